"""The roles page asks whose rows these are, and the policy says what was answered."""


def test_a_box_states_that_each_row_is_one_person(client, workspace, tools):
    tools.with_people(
        client, workspace, policy=tools.policy.replace("one_row_per_person = true\n", "")
    )
    page = f"/w/{workspace}/roles"

    before = client.get(page).text
    answer = client.post(f"{page}/persons", data={"one_row": "yes"})
    stated, after = tools.loaded(client, workspace).policy, client.get(page).text
    client.post(f"{page}/persons", data={"place": "0"})
    taken_back = tools.loaded(client, workspace).policy

    assert 'id="one-row" name="one_row" value="yes" aria' in before
    assert answer.status_code == 200
    assert 'id="toml"' in answer.text
    assert "one_row_per_person = true" in stated
    assert 'id="one-row" name="one_row" value="yes" checked' in after
    assert "one_row_per_person" not in taken_back


def test_a_column_that_numbers_the_persons_answers_it(client, workspace, tools):
    text = tools.policy.replace('"identifier"', '{ role = "identifier", privacy_unit = true }')
    tools.with_people(client, workspace, policy=text)

    page = client.get(f"/w/{workspace}/roles").text

    assert "The column <b>name</b> numbers the persons" in page
    assert 'id="one-row"' not in page

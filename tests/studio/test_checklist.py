"""The checklist of the release page: what it says of its points follows from their marks."""

import re


def test_as_many_points_need_attention_as_have_a_mark(client, workspace, tools):
    page = f"/w/{workspace}/release"
    tools.with_people(client, workspace)
    said = []
    for change in (
        lambda: None,
        lambda: client.post(f"{page}/context", data={"recipient": "a university"}),
        lambda: tools.note(client, workspace, confirmed=("name", "age", "sex", "income")),
    ):
        change()
        text = client.get(page).text
        marks = len(re.findall(r'class="mark (?:todo|stop)"', text))
        words = re.search(r'Checklist</h2><span class="soft small">(.*?)</span>', text)[1]
        expected = {0: "everything is in order", 1: "1 point needs attention"}
        assert words == expected.get(marks, f"{marks} points need attention")
        said.append(marks)

    assert said[0] > said[-1]

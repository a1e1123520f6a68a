"""A slow upload is waited for."""

import time


def test_a_slow_body_and_a_slow_answer_are_waited_for(served, tools):
    content = tools.people()

    def slowly():
        yield content[:100]
        time.sleep(0.8)
        yield content[100:]

    with served.client() as client:
        workspace = tools.new(client)
        answer = client.post(
            f"/w/{workspace}/data?label=a.csv",
            content=slowly(),
            headers={"content-type": "application/octet-stream"},
        )

    assert answer.status_code == 202, answer.text

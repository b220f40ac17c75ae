"""The walk-through in CONTRIBUTING.md shows what stands in the files, and counts it right."""

import re


def test_the_attack_that_is_added_there_is_the_one_that_was_added(repo):
    text = (repo / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part, path, shown = text.partition("## Add an attack\n")[2].partition("\n## ")[0], None, []
    for said, block in re.findall(r"(.*?)```python\n(.*?)```", part, re.S):
        path = (re.findall(r"\*\*The \w+\*\*,(?: in `\w+` of)? `([\w/.]+)`", said) or [path])[-1]
        shown.append((repo / path).read_text(encoding="utf-8"))
        assert block in shown[-1], f"CONTRIBUTING.md shows of {path} what is not there:\n{block}"
    assert len(shown) == 4 and len(set(shown)) == 3
    docstring = re.search(r'    """Attack S.*?"""', shown[0], re.S)[0]
    counted = re.search(r"per_class.py` has (\d+) lines, (\d+) of them\s+the docstring, `[\w/.]+` has (\d+)", part)
    assert [len(one.splitlines()) for one in (shown[0], docstring, shown[2])] == [int(one) for one in counted.groups()]

"""The walk-through in CONTRIBUTING.md shows what stands in the files, and counts it right."""

import re


def test_the_attack_that_is_added_there_is_the_one_that_was_added(repo):
    text = (repo / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part = text.partition("## Add an attack\n")[2].partition("\n## ")[0]
    path = None
    shown = []
    for said, block in re.findall(r"(.*?)```python\n(.*?)```", part, re.S):
        named = re.findall(r"\*\*The \w+\*\*,(?: in `\w+` of)? `([\w/.]+)`", said)
        path = named[-1] if named else path
        whole = (repo / path).read_text(encoding="utf-8")
        assert block in whole, f"CONTRIBUTING.md shows of {path} what is not there:\n{block}"
        shown.append(path)
    assert len(shown) == 4 and len(set(shown)) == 3
    code, docstring, test = map(int, re.search(
        r"`mia_lib/attacks/per_class.py` has (\d+) lines, (\d+) of them\s+the docstring, `[\w/.]+` has (\d+)", part).groups())
    content = (repo / shown[0]).read_text(encoding="utf-8")
    assert len(content.splitlines()) == code
    assert len(re.search(r'    """Attack S.*?"""', content, re.S)[0].splitlines()) == docstring
    assert len((repo / shown[2]).read_text(encoding="utf-8").splitlines()) == test

"""The examples of README and of the page on models of one's own run, and CONTRIBUTING shows what stands in the files."""

import os
import re
import subprocess
import sys

import tokenizers

from mia_book.pages.parameters import find_root
from mia_lib.data import readers

ROOT = find_root()


def save_language_model(folder):
    """A tiny one, as people have them."""
    readers.import_torchvision()  # which transformers does, too, also where its extension does not fit
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = tokenizers.models.WordLevel({"?": 0, "a": 1, "word": 2, "or": 3, "two": 4}, "?")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(folder)
    config = GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)


def test_its_examples_run_as_they_stand(tmp_path):
    """Each block of Python as a script, in a folder with the modules that the page shows."""
    text = "\n".join(
        (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "book/own.md")
    )
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = [
        found[1] if (found := re.match(r"# (\w+\.py)\n", block)) else f"block_{k}.py"
        for k, block in enumerate(blocks)
    ]
    assert {"my_models.py", "my_audit.py"} < set(names)
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    for folder in ("my-tuned-model", "the-model-it-was-tuned-from"):
        save_language_model(tmp_path / folder)
    for k, name in enumerate(("members.txt", "others.txt")):
        lines = [" ".join(["a word", "or two"][(k + i) % 2 :] * (2 + i)) for i in range(60)]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    scripts = sorted(set(names) - {"my_models.py"})
    # torchvision as transformers needs it, also where its extension does not fit
    code = "from mia_lib.data import readers\nreaders.import_torchvision()\n"
    code += f"import runpy, sys\nsys.path.insert(0, '')\nfor name in {scripts}:\n    runpy.run_path(name, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "MIA_CACHE": str(tmp_path / "cache"),
            "MIA_WORKERS": "1",
        },
    )
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert (tmp_path / "roc.png").is_file()


def test_the_attack_that_is_added_there_is_the_one_that_was_added():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part, path, shown = text.partition("## Add an attack\n")[2].partition("\n## ")[0], None, []
    for said, block in re.findall(r"(.*?)```python\n(.*?)```", part, re.S):
        path = (re.findall(r"\*\*The \w+\*\*,(?: in `\w+` of)? `([\w/.]+)`", said) or [path])[-1]
        shown.append((ROOT / path).read_text(encoding="utf-8"))
        assert block in shown[-1], f"CONTRIBUTING.md shows of {path} what is not there:\n{block}"
    assert len(shown) == 4 and len(set(shown)) == 3
    docstring = re.search(r'    """Attack S.*?"""', shown[0], re.S)[0]
    counted = re.search(
        r"per_class.py` has (\d+) lines, (\d+) of them\s+the docstring, `[\w/.]+` has (\d+)", part
    )
    assert [len(one.splitlines()) for one in (shown[0], docstring, shown[2])] == [
        int(one) for one in counted.groups()
    ]

"""The docstrings of the public functions are what the generator makes, and they lack nothing."""

import ast
import doctest
import re
import shutil

import pytest

from validation import generated
from validation.tools.docstrings import __main__ as generator
from validation.tools.docstrings import text

MADE = generator.docstrings()
FUNCTIONS = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
EACH = [(framework, function) for framework in generator.FILES for function in FUNCTIONS]
SECTIONS = ["Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"]
TYPES = [f"(?=.*{name})" for name in ("float16", "bfloat16", "float32", "float64")]
# What a docstring must say, and in which section where it must be in one.
TOPICS = {
    "formula": (None, r"KL = .*F\(u\)|d(\^2)?\(-KL\)/d log_alpha(\^2)? = .*"),
    "shape": ("Returns", "shape"),
    "types": ("Parameters", rf"`neg_kl(_normal)?`\s+takes|{''.join(TYPES)}.*"),
    "sign": (None, r"\*maximise\* it \(ELBO sign\)|\*added to a loss\*|derivative of -KL"),
    "constant": (None, "constant"),
    "errors": ("Raises", "TypeError"),
    "accuracy": (None, "`logunif_kl.accuracy`|accuracy included"),
    "source": (None, r"Hron\b.*\bEq\. [13]|Eq\. [13].*\bHron"),
}


def sections(docstring):
    """The text of each section by its heading, and of what comes before under None."""
    parts = re.split(r"\n +([A-Z][A-Za-z ]+)\n +-+\n", docstring)
    return {None: parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def lacking(docstring):
    """The topics that a docstring says nothing about."""
    found = sections(docstring)
    return {
        topic
        for topic, (section, pattern) in TOPICS.items()
        if not re.search(pattern, found.get(section, "") if section else docstring, re.DOTALL)
    }


def less(docstring, topic):
    """A docstring that says nothing of one topic."""
    section, pattern = TOPICS[topic]
    if section is None:
        return re.sub(pattern, "", docstring, flags=re.DOTALL)
    part = sections(docstring)[section]
    return docstring.replace(part, re.sub(pattern, "", part, flags=re.DOTALL))


@pytest.fixture
def copies(monkeypatch, tmp_path):
    """The folder of the templates, and files with other docstrings, to be changed at will."""
    here, package = tmp_path / "docstrings", tmp_path / "package"
    shutil.copytree(generator.HERE, here)
    for framework, name in generator.FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module(framework))
    monkeypatch.setattr(generator, "HERE", here)
    monkeypatch.setattr(generator, "PACKAGE", package)
    return here


def module(framework):
    functions = "\n\n".join(f'def {name}(x):\n    """Of {framework}."""\n' for name in FUNCTIONS)
    return f'"""Nä."""\r\n\n{functions}\n\ndef other():\n    """Stays."""\n'.encode()


def run(*arguments):
    return generated.main(generator.COMMAND, generator.sources, arguments)


def change(path, old, new):
    content = path.read_text("utf-8")
    assert old in content
    path.write_text(content.replace(old, new, 1), "utf-8")


class TestFiles:
    def test_are_what_the_generator_makes(self):
        assert run("--check") == 0

    @pytest.mark.parametrize("name", generator.FILES.values())
    def test_a_stale_one_is_told(self, name, copies, capsys):
        assert run() == 0
        assert run("--check") == 0
        change(generator.PACKAGE / name, "As for `neg_kl`.", "As for `neg_kl`!")
        assert run("--check") == 1
        assert f"{name} differs from its source: run {generator.COMMAND}" in capsys.readouterr().err
        assert run() == 0
        assert run("--check") == 0

    def test_one_sentence_is_changed_for_all_four(self, copies):
        run()
        before = {path: path.read_text("utf-8") for path in generator.sources()}
        change(copies / "neg_kl.txt", "Nothing is clipped or sampled.", "Nothing is sampled.")
        assert run("--check") == 1
        run()
        for path, content in before.items():
            assert "clipped or sampled" in content
            assert "clipped or sampled" not in path.read_text("utf-8")

    def test_all_else_stays(self):
        source = module("numpy")
        found = generator.rewritten(source, MADE["numpy"])
        for function in FUNCTIONS:
            source = source.replace(b'"""Of numpy."""', MADE["numpy"][function].encode(), 1)
        assert found == source
        assert generator.rewritten(found, MADE["numpy"]) == found


class TestRefusals:
    def test_a_slot_that_nothing_fills(self, copies):
        change(copies / "kl.txt", "Returns", "$nothing\n\nReturns")
        with pytest.raises(ValueError, match=r"kl.txt with numpy.toml: nothing fills .*\$nothing"):
            generator.docstrings()

    def test_a_text_that_fills_nothing(self, copies):
        change(copies / "jax.toml", "[kl]", '[kl]\nretuned = ""')
        with pytest.raises(ValueError, match=r"no template uses retuned under \[kl\] of jax.toml"):
            generator.docstrings()

    def test_a_function_that_is_not_there(self):
        with pytest.raises(ValueError, match="docstring to replace: neg_kl_grad"):
            generator.rewritten(b"def neg_kl_grad(x):\n    return x\n", {"neg_kl_grad": ""})

    @pytest.mark.parametrize("line", ["a\\b", 'a """ b'])
    def test_what_no_quotes_hold(self, line):
        with pytest.raises(ValueError, match="neither a backslash nor three quotes: Title"):
            text.docstring(["Title.", "", line])

    @pytest.mark.parametrize("lines", [["Title."], ["Title.", "More."], ["x" * 94, "", "More."]])
    def test_a_first_line_that_does_not_stand_alone(self, lines):
        with pytest.raises(ValueError, match="to stand alone at the top"):
            text.docstring(lines)


class TestText:
    def test_slots(self):
        slots = {"a": "one\ntwo $b", "b": "three", "none": ""}
        used = set()
        assert text.filled("x $b.\n$none\n    $a", slots, used) == [
            "x three.",
            "    one",
            "    two three",
        ]
        assert used == {"a", "b", "none"}

    def test_paragraphs(self):
        word = "word " * 30
        lines = ["T.", "", "Notes", "-----", word, "more, by::", "", "    a  =  b"]
        lines += ["", "", ">>> f(  1)", "  1"]
        assert text.docstring(lines).splitlines() == [
            '"""T.',
            "",
            "    Notes",
            "    -----",
            "    " + ("word " * 19).strip(),
            "    " + "word " * 11 + "more, by::",
            "",
            "        a  =  b",
            "",
            "    >>> f(  1)",
            "      1",
            '    """',
        ]

    def test_entries(self):
        lines = ["T.", "", "a, b : the first.", "c : the second.", ".. [1] " + "word " * 25]
        assert text.docstring(lines).splitlines()[2:-1] == [
            "    a, b : the first.",
            "    c : the second.",
            "    .. [1] " + ("word " * 18).strip(),
            "       " + ("word " * 7).strip(),
        ]

    def test_an_equation_is_not_broken(self):
        found = text.docstring(["T.", "", "w" * 82 + " with mu = 0 - 1 by Eq. 3."])
        assert found.splitlines()[2:-1] == ["    " + "w" * 82 + " with", "    mu = 0 - 1 by Eq. 3."]


@pytest.mark.parametrize(("framework", "function"), EACH)
class TestContents:
    def test_lacks_nothing(self, framework, function):
        assert lacking(MADE[framework][function]) == set()

    def test_a_lack_is_found(self, framework, function):
        for topic in TOPICS:
            assert topic in lacking(less(MADE[framework][function], topic))

    def test_sections(self, framework, function):
        found = [name for name in sections(MADE[framework][function]) if name]
        assert found == [name for name in SECTIONS if name in found]
        assert {"Parameters", "Returns", "Raises", "Examples"} <= set(found)

    def test_example(self, framework, function):
        found = doctest.DocTestParser().get_examples(MADE[framework][function])
        assert any(f"{function}(" in each.source for each in found)
        assert found[-1].want

    def test_columns(self, framework, function):
        assert max(map(len, MADE[framework][function].splitlines())) <= text.WIDTH

    def test_parameters_are_those_of_the_function(self, framework, function):
        if not generator.PACKAGE.exists():
            pytest.skip("the tests are running away from the source tree")
        source = (generator.PACKAGE / generator.FILES[framework]).read_text("utf-8")
        (node,) = [
            node
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef) and node.name == function
        ]
        part = sections(MADE[framework][function])["Parameters"]
        documented = re.findall(r"^ {4}([\w, ]+) : ", part, re.MULTILINE)
        arguments = [each.arg for each in [*node.args.args, *node.args.kwonlyargs]]
        assert ", ".join(documented).split(", ") == arguments

"""config.toml: whatever name a file or column has, what is written is what is read."""

import string
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nefele.runs.config import RunConfig, read_config, template

NAMES = [
    "",
    "plain",
    'a "quoted" name',
    "it's",
    "C:\\new\\users\\table.csv",
    "two\nlines",
    "old\rline",
    "tab\there",
    "\x00\x01\x1b[31m",
    "delete\x7f",
    "c1\x85\x9b",
    "line\u2028paragraph\u2029",
    "\u202eoverride",
    "\ufeffmark",
    "gesture \U0001faf9",
    "\U0001d54f math",
    "last \U0010ffff",
    "\U000e0041 tag",
    "# no comment",
    '"""',
    "'''",
    "\\u1faf9",
    "{braces} [brackets]",
]


def again(config):
    """The configuration, written to text and read from it."""
    return RunConfig.from_dict(tomllib.loads(config.to_toml().encode("utf-8").decode("utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_comes_back(name, tmp_path):
    config = RunConfig("a.csv", "id", f"y{name}", features=(name, "x"))
    assert again(config) == config
    file = tmp_path / "config.toml"
    file.write_text(config.to_toml(), encoding="utf-8", newline="\n")
    found = read_config(file)
    assert (found.target, found.features) == (config.target, config.features)


@given(st.lists(st.text(), unique=True), st.text(), st.text())
def test_any_text_comes_back(features, node, target):
    features = tuple(name for name in features if name not in (node, target, "intercept"))
    if node != target:
        data = target.replace("\0", "0")  # no file can be called that
        config = RunConfig(data, node, target, features=features, time=None)
        assert again(config) == config


@given(st.floats(min_value=0.0, allow_infinity=False), st.floats(min_value=5e-324, max_value=1e308))
def test_numbers_come_back_to_the_last_bit(alpha, tol):
    found = again(RunConfig("a.csv", "id", "y", alpha=alpha, tol=tol, l2=alpha))
    assert (found.alpha, found.l2, found.tol) == (alpha, alpha, tol)
    assert isinstance(found.alpha, float)


def test_what_is_not_set_is_left_out():
    keys = tomllib.loads(RunConfig("a.csv", "id", "y").to_toml())
    assert "features" not in keys and "l2" not in keys and keys["alpha"] == "auto"


@pytest.mark.parametrize("name", ["a\nb = 1", "run\rnode = 2", *string.punctuation])
def test_the_template_is_toml_whatever_its_file_is_called(name):
    keys = tomllib.loads(template(name))
    assert keys == tomllib.loads(template("plain"))


def test_a_name_of_a_file_without_meaning_is_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('data = "a\\u0000.csv"\nnode = "id"\ntarget = "y"\n')
    with pytest.raises(ValueError, match=r"UTF-8 text; got '.*a\\x00.csv'"):
        read_config(file)

"""A site's own model that cannot be made is an error of that file, not of the program."""

import pytest

from nefele.sites.config import Model
from nefele.sites.models import maker


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("def make_model(:", "SyntaxError"),
        ("def make_model():\n    raise RuntimeError('boom')", "RuntimeError: boom"),
    ],
)
def test_a_file_that_fails_is_named(tmp_path, code, message):
    (tmp_path / "model.py").write_text(code)
    with pytest.raises(ValueError, match=message):
        maker(Model(file=tmp_path / "model.py"))

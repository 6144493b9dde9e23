"""The documentation site: `make docs`, then open build/docs/html/index.html."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]
# Notebooks run in processes of their own, which must find the package too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# What kernels say about their connection is of no interest to who builds the site.
kernels = HERE.parent / "build" / "docs" / "ipython" / "profile_default"
kernels.mkdir(parents=True, exist_ok=True)
(kernels / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(kernels.parent)

import nefele  # noqa: E402

project = "nefele"
author = "The nefele developers"
project_copyright = author
version = release = nefele.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "gallery",
    "reference",
    "outside",
]
exclude_patterns = ["_ext", "_static"]
default_role = "py:obj"
toc_object_entries = False
python_use_unqualified_type_names = True

autodoc_typehints = "none"  # the docstrings say shapes, which types do not
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = "nefele"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "nefele"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", "notebook"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": []}
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

"""C: wrong programs whose run ends green with the tests of the beginning. A run that is called `succeeded, by
its own tests` is not green. Every program here is wrong: `double` gives no double."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, write

CHECK = 'VALIDATOR PyTest { paths: ["tests"] }'
BAD = "def double(n):\n    return n\n"
TURN = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
GOOD_TEST = "def test_double():\n    assert True\n"
TEXTS = {
    "the test is replaced": {"tests/test_util.py": GOOD_TEST},
    "the test expects what is wrong": {
        "tests/test_util.py": "from src.util import double\n\ndef test_double():\n    assert double(3) == 3\n"
    },
    "a test that imports another": {
        "tests/test_util.py": "from src.app import double\n\ndef test_double():\n    assert True\n"
    },
    "a conftest below tests": {"tests/conftest.py": TURN},
    "a conftest at the top": {"conftest.py": TURN},
    "a conftest beside the source": {"src/conftest.py": TURN},
    "an empty list of tests": {"conftest.py": "collect_ignore_glob = ['*']\n"},
    "settings of pytest": {"pytest.ini": "[pytest]\naddopts = --co\n"},
    "settings that choose": {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k nothing'\n"},
    "settings below tests": {"tests/pytest.ini": "[pytest]\naddopts = --co\npython_functions = nothing\n"},
    "a pytest of its own": {"pytest.py": "print('1 passed')\n"},
    "a pytest below tests": {"tests/pytest.py": "print('1 passed')\n"},
    "sitecustomize": {"sitecustomize.py": "import os\nos._exit(0)\n"},
    "a package that shadows the source": {
        "tests/src/__init__.py": "",
        "tests/src/util.py": "def double(n):\n    return 6\n",
    },
    "tests that are skipped": {
        "tests/__init__.py": "import pytest\npytest.skip('x', allow_module_level=True)\n"
    },
    "a new test beside": {"tests/test_zz.py": "import src.util\nsrc.util.double = lambda n: 6\n"},
    "a test that runs first": {"tests/test_aa.py": "import src.util\nsrc.util.double = lambda n: 6\n"},
    "a program that ends": {"src/util.py": f"import os\nos._exit(0)\n{BAD}"},
    "a program that leaves": {"src/util.py": f"raise SystemExit(0)\n{BAD}"},
    "a program that skips": {
        "src/util.py": f"import pytest\npytest.skip('x', allow_module_level=True)\n{BAD}"
    },
    "a program that skips when called": {
        "src/util.py": "def double(n):\n    import pytest\n    pytest.skip('x')\n"
    },
    "a program that prints a report": {
        "src/util.py": f"print('1 passed in 0.01s')\nimport os\nos._exit(0)\n{BAD}"
    },
}
LINES = {
    "tests are removed": "rm -r tests",
    "tests are renamed": "mv tests/test_util.py tests/util.txt",
    "tests lead elsewhere": "rm -r tests; mkdir docs/t; printf 'def test_a():\\n    pass\\n' > docs/t/test_a.py; ln -s docs/t tests",
    "byte code": "python3 -c \"import py_compile as p; open('src/u.py', 'w').write('def double(n):\\n    return 6\\n'); p.compile('src/u.py', 'src/__pycache__/util.cpython-311.pyc', invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"",
    "byte code of the test": "python3 -c \"import py_compile as p; open('docs/t.py', 'w').write('def test_double():\\n    pass\\n'); p.compile('docs/t.py', 'tests/__pycache__/test_util.cpython-311-pytest-9.2.0.pyc', invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"",
    "a cache of pytest": "mkdir -p .pytest_cache; echo HARM > .pytest_cache/lastfailed",
    "a link for the source": "printf 'def double(n):\\n    return n\\n' > docs/u.md; ln -sf ../docs/u.md src/util.py",
}
INSIDE = {
    "a result equal to all": "class Any(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n\ndef double(n):\n    return Any(n)\n",
    "a program that turns reports": "import _pytest.runner as r\nmade = r.TestReport.from_item_and_call\n\ndef turned(item, call):\n    call.excinfo = None\n    return made(item, call)\n\nr.TestReport.from_item_and_call = turned\n\ndef double(n):\n    return n\n",
}
"""Code under test shares the process with its test, so that no check there finds these; sealed checks are apart."""


def attacks() -> Iterator[Attack]:
    """The table."""
    for name, files in TEXTS.items():
        steps = tuple(write(path, text) for path, text in {"src/util.py": BAD, **files}.items())
        yield Attack(name, steps, check=CHECK)
    for name, text in LINES.items():
        yield Attack(name, (write("src/util.py", BAD), line(text)), check=CHECK)
    for name, text in INSIDE.items():
        yield Attack(name, (write("src/util.py", text),), check=CHECK)

"""The pytest plugin: a fixture that checks, a record of all checks in tests, and torch's checker replaced by ours.

Only the standard library and pytest are imported here; gradproof, and with it a framework, comes with its first use.
"""

from __future__ import annotations

import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradproof import Result
    from gradproof.render.files import Written

# Who is told of checks at the moment: `gradproof.recording` looks here.
host: Session | None = None

_ATTRIBUTE = "gradproof_checks"
_KEY = pytest.StashKey["Session"]()
_REPLACED = pytest.StashKey[ExitStack]()
_HELP = {
    "effort": "how much each check looks at where a test leaves it open: auto, exhaustive, or a number of probes",
    "seed": "of each check where a test leaves it open: a number, or random for a fresh one (default: 0)",
    "html": "write all checks of the run as one page with plots",
    "json": "write all checks of the run as JSON, for gradproof show and replay",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What is kept of one result: JSON if a file was asked for, what it says if not RIGHT, whether the test passed."""

    name: str
    verdict: str
    calls: int
    seconds: float
    text: str
    report: str
    passed: bool = False


class Checker:
    """The fixture: `gradproof.check(fn, args)` in a test."""

    def __init__(self, session: Session) -> None:
        self.seed = session.seed

    def __repr__(self) -> str:
        return f"<gradproof, seed {self.seed}>"

    def check(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Result:
        """`gradproof.check` with the same options; fails the test unless the verdict is RIGHT."""
        __tracebackhide__ = True
        import gradproof

        result = gradproof.check(fn, args, kwargs, **options)
        if not result.ok:
            raise gradproof.GradcheckError(str(result), result)
        return result


class Session:
    """One run of pytest, or one worker of it: what is asked for, and what was heard."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.files = {kind: Path(path) for kind in ("json", "html") if (path := _option(config, kind))}
        self.effort = _effort(_option(config, "effort"))
        self.detail = "plots" if "html" in self.files else None
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)  # of xdist
        self.writes = bool(self.files) and worker is None and not config.getoption("collectonly")
        if self.writes:
            _prepare(self.files)
        given = _option(config, "seed") or "0"
        self.seed = worker["gradproof_seed"] if worker else _seed(given)
        self.fresh = given == "random"
        # How the run was started; a worker of xdist is told, because it was started otherwise.
        self.invoked = worker["gradproof_invoked"] if worker else _invoked(config)
        self.checks: list[Check] = []
        self._written: Written | None = None
        self._test = ""
        self._heard: list[Check] = []
        self._names: Counter[str] = Counter()

    def heard(self, result: Result) -> None:
        """Called for every check, by whatever name it was started."""
        if not self._test:
            return
        name = f"{self._test} > {result.name}"
        self._names[name] += 1
        if self._names[name] > 1:
            name = f"{name} #{self._names[name]}"
        cost, text = result.cost, "" if result.ok else str(result)
        calls = cost.evaluations + cost.pulls + cost.pushes
        report = self._dumped(result, name) if self.files else ""
        self._heard.append(Check(name, result.verdict.value, calls, cost.seconds, text, report))

    def _dumped(self, result: Result, name: str) -> str:
        """Arrays are not kept: a long run would fill the memory with them."""
        from gradproof.render.json import dumps
        from gradproof.result import Report
        from gradproof.testrun import placed

        again = placed(self.command(self._test), Path(self.invoked["folder"]))
        return dumps(Report((replace(result, name=name, source=again),)))

    def command(self, test: str) -> str:
        """What runs this test again as it ran here, with the same seed."""
        from gradproof.testrun import command, options

        words = options(self.invoked["words"], self.invoked["tests"])
        effort = [] if self.effort is None else [f"--gradproof-effort={self.effort}"]
        swapped = ["--gradproof-replace-torch"] if _replacing(self.config) else []
        ours = [f"--gradproof-seed={self.seed}", *effort, *swapped]
        return command(test, self.config.rootpath, Path(self.invoked["folder"]), [*words, *ours])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._test = item.nodeid
        self._names.clear()  # not before a rerun, nor between parts of a test: those have names of their own
        try:
            return (yield)
        finally:
            self._test = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        # pytest takes what a unittest.TestCase raised from the item, while the report is made.
        if call.excinfo is not None or getattr(item, "_excinfo", None):
            _hide_our_frames()
        report = yield
        ours = call.excinfo is not None and _is_ours(call.excinfo.value)
        heard, self._heard = self._heard, []
        if heard:
            # Plain values, so that xdist and others can send the report.
            setattr(report, _ATTRIBUTE, [asdict(check) for check in heard])
        unclear = [check.text for check in heard if check.text]
        if ours or unclear:
            from gradproof.testrun import last, say_it_plainly

            if ours:
                say_it_plainly(report.longrepr)
            if report.failed and unclear:
                said = [] if ours else last(unclear)  # what was raised has said it
                report.sections.append(("gradproof", "\n\n".join([*said, f"replay: {self.command(item.nodeid)}"])))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Here too for tests that ran in a worker."""
        for heard in getattr(report, _ATTRIBUTE, ()):
            self.checks.append(Check(**{**heard, "passed": report.outcome == "passed"}))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """One seed for all workers of xdist, and one command."""
        node.workerinput["gradproof_seed"] = self.seed
        node.workerinput["gradproof_invoked"] = self.invoked

    def pytest_report_header(self) -> str | None:
        return f"gradproof: seed {self.seed} (replay with --gradproof-seed={self.seed})" if self.fresh else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.writes:
            from gradproof.render.files import written

            command = shlex.join(["pytest", *self.config.invocation_params.args])
            self._written = written(self.files, [check.report for check in self.checks], command)
            if self._written.refused:
                session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.checks:
            from gradproof.testrun import summary

            loud = any(not check.passed and check.text for check in self.checks)
            terminalreporter.write_line(summary(self.checks), yellow=loud)
        if self._written is not None and (self.checks or self._written.refused):
            terminalreporter.write_line(f"gradproof: {self._written.words}", red=self._written.refused)


@pytest.fixture
def gradproof(request: pytest.FixtureRequest) -> Checker:
    """`gradproof.check(fn, args)` checks the gradients of fn, records the result and fails unless it is RIGHT."""
    return Checker(request.config.stash[_KEY])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradproof", "gradient checks (gradproof)")
    for name, text in _HELP.items():
        group.addoption(f"--gradproof-{name}", metavar="PATH" if name in ("html", "json") else name.upper(), help=text)
        parser.addini(f"gradproof_{name}", text, default="")
    swap = "let torch.autograd.gradcheck and gradgradcheck be gradproof's"
    group.addoption("--gradproof-replace-torch", action="store_true", help=swap)
    parser.addini("gradproof_replace_torch", swap, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest can import torch's checker by name."""
    if getattr(early_config.known_args_namespace, "gradproof_replace_torch", False):
        _replace_torch(early_config)


def pytest_configure(config: pytest.Config) -> None:
    global host
    if _replacing(config):
        _replace_torch(config)
    session = config.stash[_KEY] = Session(config)
    config.pluginmanager.register(session, "gradproof-session")
    previous, host = host, session

    def leave() -> None:
        global host  # noqa: PLW0603
        host = previous

    config.add_cleanup(leave)


def _replacing(config: pytest.Config) -> bool:
    return bool(config.getoption("gradproof_replace_torch") or config.getini("gradproof_replace_torch"))


def _replace_torch(config: pytest.Config) -> None:
    if _REPLACED in config.stash:
        return
    try:
        import torch  # noqa: F401
    except ImportError as missing:
        raise pytest.UsageError("--gradproof-replace-torch needs torch, which is not installed") from missing
    from gradproof.torch.dropin.replace import replaced

    stack = config.stash[_REPLACED] = ExitStack()
    stack.enter_context(replaced())
    config.add_cleanup(stack.close)


def _option(config: pytest.Config, name: str) -> str:
    """From the command line, or else from the ini file."""
    given = config.getoption(f"gradproof_{name}")
    return str(config.getini(f"gradproof_{name}") if given is None else given)


def _invoked(config: pytest.Config) -> dict[str, Any]:
    """Plain values, which xdist can send."""
    given = config.invocation_params
    tests = [str(test) for test in config.getoption("file_or_dir") or ()]
    return {"words": [str(word) for word in given.args], "tests": tests, "folder": str(given.dir)}


def _seed(text: str) -> int:
    if text != "random" and not text.isdecimal():
        raise pytest.UsageError(f"--gradproof-seed={text} is not understood; write a number such as 7, or random")
    return secrets.randbits(32) if text == "random" else int(text)


def _effort(text: str) -> Any:
    if text in ("", "auto", "exhaustive") or (text.isdecimal() and int(text) > 0):
        return int(text) if text.isdecimal() else text or None
    raise pytest.UsageError(f"--gradproof-effort={text} is not understood; write auto, exhaustive, or a number")


def _prepare(files: Mapping[str, Path]) -> None:
    """Find out before a long run what would fail after it."""
    from gradproof.errors import UsageError
    from gradproof.render.files import Files

    if Path("-") in files.values():
        raise pytest.UsageError("a report of pytest goes to a file; write one for -, such as report.json")
    try:
        Files(**files).prepare()
    except UsageError as refused:
        raise pytest.UsageError(str(refused)) from None


def _is_ours(raised: BaseException) -> bool:
    return isinstance(raised, getattr(sys.modules.get("gradproof.errors"), "GradcheckError", ()))


def _hide_our_frames() -> None:
    """What a test sees is its own line, and its own function if that raised. pytest leaves out the frames of a module
    that has this name, unless --full-trace is given."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "gradproof":
            vars(module)["__tracebackhide__"] = True

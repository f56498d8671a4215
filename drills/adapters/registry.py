"""Adapters by name: `module:attr` and the entry points of group `stopdrill.adapters`.

`attr` is a class, a function without arguments, or an adapter itself, and the current folder can be imported from.
`load` imports an author's code and is called where that may happen: in the driver when the user asked for it
(`in_process`), otherwise in a process of its own (`drills.adapters.remote`), which hands back the adapter's `Shape`.
"""

import difflib
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from drills.adapters.base import CONTROLS, Adapter, BaseAdapter, Capabilities
from drills.errors import UsageProblem

GROUP = "stopdrill.adapters"
METHODS = ("start", *CONTROLS, "answer", "claims", "restart", "close")
_SCOPES = ("turn", "agent", "run")


@dataclass(frozen=True)
class Shape:
    """What can be told of an adapter without calling it.

    `missing` and `wrong` (sentences about `capabilities`) make it unusable; `blocking` names methods that are not
    async, `hollow` controls that are declared and never implemented: a drill shows what these two come to.
    """

    name: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    hollow: tuple[str, ...] = ()

    def check(self, spec: str) -> None:
        """Raise UsageProblem unless it can be drilled."""
        if self.missing:
            raise UsageProblem(
                f"{spec} is no adapter: it has no {', '.join(self.missing)}."
                f" Derive it from drills.BaseAdapter and add what your coordinator has."
            )
        if self.wrong:
            raise UsageProblem(f"{spec} is no adapter: {'; '.join(self.wrong)}")


def shape_of(adapter: object, spec: str = "") -> Shape:
    """The shape of an object that may be an adapter. Never raises."""
    missing = tuple(name for name in ("name", "capabilities", *METHODS) if not hasattr(adapter, name))
    there = [name for name in METHODS if name not in missing]
    blocking = tuple(name for name in there if not inspect.iscoroutinefunction(getattr(adapter, name)))
    declared = getattr(adapter, "capabilities", None)
    wrong = _wrong_capabilities(declared) if "capabilities" not in missing else []
    capabilities = declared if isinstance(declared, Capabilities) and not wrong else Capabilities(controls={})
    hollow = tuple(name for name in CONTROLS if name in capabilities.controls and _is_hollow(adapter, name))
    return Shape(str(getattr(adapter, "name", spec)), capabilities, missing, tuple(wrong), blocking, hollow)


def _is_hollow(adapter: object, name: str) -> bool:
    return getattr(type(adapter), name, None) is getattr(BaseAdapter, name) and name not in vars(adapter)


def _wrong_capabilities(declared: Any) -> list[str]:
    if not isinstance(declared, Capabilities):
        return [f"its capabilities are {type(declared).__name__}, not drills.Capabilities(controls={{…}})"]
    controls: Any = declared.controls
    if not isinstance(controls, Mapping):
        return ['its capabilities.controls is no mapping of control to scope, as in {"abort": "run"}']
    unknown = [name for name in controls if name not in CONTROLS]
    found = [f"it declares {name!r}, which is no control; there are {', '.join(CONTROLS)}" for name in unknown]
    scopes = {name: scope for name, scope in controls.items() if scope not in _SCOPES}
    found += [f"its {name} has scope {scope!r}; there are {', '.join(_SCOPES)}" for name, scope in scopes.items()]
    if declared.pause_means not in ("quiesce", "hold"):
        found.append(f"its pause_means is {declared.pause_means!r}; it is quiesce or hold")
    return found


def entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Adapters that installed packages offer: name to entry point."""
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


def spec_of(name: str) -> str | None:
    """`module:attr` for what is one already, or names an entry point; None for anything else."""
    points = entry_points()
    if name in points:
        return points[name].value
    module, colon, attribute = name.partition(":")
    words = [*module.split("."), *attribute.split(".")]
    return name if colon and all(word.isidentifier() for word in words) else None


def load(spec: str) -> Any:
    """What `module:attr` stands for, made if it is a class or a function. Imports it; raises UsageProblem."""
    module_name, _, attribute = spec.partition(":")
    _make_current_folder_importable()
    found: Any = _import(spec, module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            there = [other for other in vars(found) if not other.startswith("_")] if hasattr(found, "__dict__") else []
            where = getattr(found, "__file__", None) or getattr(found, "__name__", spec)
            near = difflib.get_close_matches(name, there, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageProblem(f"{spec}: there is no {name!r} in {where}{hint}")
        found = getattr(found, name)
    return _made(spec, found)


def load_adapter(spec: str) -> Adapter:
    """`load`, and it is an adapter. Raises UsageProblem."""
    adapter: Adapter = load(spec)
    shape_of(adapter, spec).check(spec)
    return adapter


def _made(spec: str, found: Any) -> Any:
    if not inspect.isclass(found) and (hasattr(found, "start") or not callable(found)):
        return found
    try:
        made = found()
    except (Exception, SystemExit) as error:
        what = "class" if inspect.isclass(found) else "function"
        raise UsageProblem(
            f"{spec}: calling this {what} without arguments raised {_told(error)}. Name a class or a function that"
            f" needs no arguments, or an adapter itself."
        ) from error
    if inspect.iscoroutine(made):
        made.close()
        raise UsageProblem(f"{spec}: this function is async; it has to return the adapter itself")
    return made


def _import(spec: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageProblem(
                f"{spec}: there is no module {error.name!r}, neither in {Path.cwd()} nor among what is installed"
            ) from error
        raise UsageProblem(f"{spec}: importing {name} raised {_told(error)}") from error
    except (Exception, SystemExit) as error:  # a module that exits on import must not take us along
        raise UsageProblem(f"{spec}: importing {name} raised {_told(error)}") from error


def _told(error: BaseException) -> str:
    """What was raised and where, in one line."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    # Of no use to the author: the import system's own frames, and ours.
    place = (
        f" ({file}, line {trace.tb_lineno})" if trace is not None and Path(file).exists() and file != __file__ else ""
    )
    return f"{type(error).__name__}: {error}{place}"


def _make_current_folder_importable() -> None:
    # Ours first, because a `reports` or `fakes` of the user's own must not take their place later.
    for ours in ("fakes", "reports", "scoring"):
        importlib.import_module(ours)
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)

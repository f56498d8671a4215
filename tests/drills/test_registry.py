"""Adapters by name: what `module:attr` may be, and that a bad one is a sentence before anything else happens."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from drills.adapters import registry
from drills.adapters.remote import RemoteAdapter, describe, remote_adapter
from drills.adapters.subjects import adapter_for, names
from drills.errors import UsageProblem
from tests.drills import adapters_for_tests as bad

HERE = "tests.drills.adapters_for_tests"


@pytest.mark.parametrize("attribute", ["Raises", "factory", "instance"])
def test_a_class_a_factory_and_an_instance_are_all_adapters(attribute: str) -> None:
    """Hazard: an author has to guess which of the three is meant."""
    assert registry.shape_of(registry.load_adapter(f"{HERE}:{attribute}")).missing == ()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nowhere_at_all:Mine", "there is no module 'nowhere_at_all'"),
        (f"{HERE}:Raise", "there is no 'Raise'"),
        (f"{HERE}:Raise", "did you mean Raises?"),
        (f"{HERE}:needs_arguments", "without arguments raised TypeError"),
        (f"{HERE}:NoAdapter", "is no adapter: it has no capabilities, pause, resume, redirect, abort, answer"),
        (f"{HERE}:Odd", "declares 'stop', which is no control; there are pause, resume, redirect, abort"),
        (f"{HERE}:Odd", "scope 'fleet'; there are turn, agent, run"),
    ],
)
def test_a_bad_spec_is_told_in_a_sentence(spec: str, says: str) -> None:
    """Hazard: a traceback, or a world that is made for nothing."""
    with pytest.raises(UsageProblem) as caught:
        registry.load_adapter(spec)
    assert says in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "def broken(:", "import not_there_either", "1 / 0"])
def test_a_module_that_cannot_be_imported_is_told_with_its_place(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard: an author's import error that looks like ours, or an exit that takes us along."""
    name = f"broken_module_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageProblem, match=f"importing {name} raised"):
        registry.load(f"{name}:Mine")


def test_the_current_folder_can_be_imported_from_and_shadows_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard: an author's `reports.py` takes the place of our package in the adapter's process."""
    (tmp_path / "my_fleet.py").write_text(
        "from drills.adapters.bundled import BundledAdapter as Mine\nprint('noise')\n"
    )
    (tmp_path / "fakes.py").write_text("raise SystemExit('in the way')\n")
    monkeypatch.chdir(tmp_path)
    assert describe("my_fleet:Mine").name == "reference"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import os, sys; print('last words', file=sys.stderr, flush=True); os._exit(5)", "status 5.*last words"),
        ("raise RuntimeError('no config')", "RuntimeError: no config .*dies.py, line 1"),
    ],
)
def test_a_module_that_ends_its_process_is_told_too(
    source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard: an import that kills the harness, or leaves it waiting."""
    (tmp_path / "dies.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageProblem, match=says):
        remote_adapter("dies:Mine")


def test_an_import_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: a module that waits for a server keeps `stopdrill run` from ever saying anything."""
    (tmp_path / "hangs.py").write_text("import threading\nthreading.Event().wait(3600)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("drills.adapters.remote.DESCRIBE_WITHIN_S", 1.0)
    with pytest.raises(UsageProblem, match="importing it took longer than 1 s"):
        remote_adapter("hangs:Mine")


def test_entry_points_are_subjects_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: an installed adapter that nobody can find."""
    point = EntryPoint("acme", f"{HERE}:Raises", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda: {"acme": point})
    assert "acme" in names()
    assert isinstance(adapter_for("acme", in_process=True), bad.Raises)
    assert isinstance(adapter_for("acme"), RemoteAdapter)


def test_names_of_other_kinds_are_left_alone() -> None:
    """Hazard: `broken:x` or a path is taken for a module."""
    for name in ("broken:nonsense", "nonsense", "a b:c", ":c", "m:"):
        with pytest.raises(UsageProblem, match="no subject named"):
            adapter_for(name)


def test_a_shape_survives_its_way_out_of_the_process() -> None:
    """Hazard: what an adapter declares differs by where it runs."""
    for name in ("Raises", "Lacks", "NoAdapter", "Hollow", "Odd"):
        assert describe(f"{HERE}:{name}") == registry.shape_of(getattr(bad, name)(), f"{HERE}:{name}")

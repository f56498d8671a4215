"""Which task a shim is to work on, from what surrounds it: environment, folder, branch, prompt, in that order.

Everything is read by hand, the plan too: only the names of its tasks are wanted, and `json` costs more to import
than the interpreter to start. Not done here: guessing, which needs to know what others took (`claims`).
"""

import posix

TYPE_CHECKING = False  # spares the import of `collections`
if TYPE_CHECKING:
    from collections.abc import Callable

_BYTES_MAX = 4 * 1024 * 1024


def planned(plan: str) -> tuple[list[str], list[str]]:
    """The names of the tasks in the text of a plan, and of those that a redirect may add."""
    names: dict[str, list[str]] = {"tasks": [], "adds": []}
    # After the escapes have gone, every other part is a string; the parts between them hold the brackets.
    parts = plan.replace("\\\\", "").replace('\\"', "").split('"')
    depth, section = 0, ""
    for at in range(1, len(parts) - 1, 2):
        between = parts[at - 1]
        depth += between.count("{") + between.count("[") - between.count("}") - between.count("]")
        if depth > 2 or not parts[at + 1].lstrip().startswith(":"):
            continue
        if depth == 1:
            section = parts[at]
        elif section in names:
            names[section].append(parts[at])
    return names["tasks"], names["adds"]


def find(tasks: list[str], named: str, folder: str, prompt: "Callable[[], str]") -> tuple[str, str]:
    """The task and how it was found; two empty strings when nothing tells.

    `named` is TASK_ID, `folder` the working directory. `prompt` is asked only when nothing else tells.
    """
    if named in tasks:
        return named, "TASK_ID"
    if task := in_folder(folder, tasks):
        return task, "folder"
    if task := in_branch(branch_of(folder), tasks):
        return task, "branch"
    if task := in_prompt(prompt(), tasks):
        return task, "prompt"
    return "", ""


def in_folder(folder: str, tasks: list[str]) -> str:
    """The task that a part of the path is named after: the one below `worktrees`, otherwise the innermost."""
    parts = folder.split("/")
    below = [parts[at + 1] for at in range(len(parts) - 1) if parts[at] == "worktrees"]
    return next((part for part in (*below[::-1], *parts[::-1]) if part in tasks), "")


def branch_of(folder: str) -> str:
    """The branch that is checked out there, or an empty string: detached, or no repository."""
    while folder:
        dot_git = folder + "/.git"
        head = read(dot_git + "/HEAD")
        if not head and (pointer := read(dot_git)).startswith("gitdir:"):
            place = pointer.removeprefix("gitdir:").strip()
            head = read((place if place.startswith("/") else f"{folder}/{place}") + "/HEAD")
        if head:
            return head.strip().removeprefix("ref: refs/heads/") if head.startswith("ref:") else ""
        folder = folder.rpartition("/")[0]
    return ""


def in_branch(branch: str, tasks: list[str]) -> str:
    """The task that the last part of the branch's name is."""
    last = branch.rpartition("/")[2]
    return last if last in tasks else ""


_MARKERS = ("[task:{}]", "task {}", "{}:", "{}")


def in_prompt(prompt: str, tasks: list[str]) -> str:
    """The task of the strongest marker in the prompt; of two such markers, of the first."""
    text = prompt.lower()
    for marker in _MARKERS:
        hits = [(at, -len(task), task) for task in tasks if (at := _word(text, marker.format(task.lower()))) >= 0]
        if hits:
            return min(hits)[2]
    return ""


def _word(text: str, word: str) -> int:
    """Where `word` stands in the text and is not part of a longer word; -1 when it doesn't."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_joins(text[at - 1 : at], word[0]) or _joins(text[end : end + 1], word[-1])):
            return at
        at = text.find(word, at + 1)
    return -1


def _joins(neighbour: str, edge: str) -> bool:
    return (neighbour.isalnum() or neighbour == "_") and (edge.isalnum() or edge == "_")


def read(path: str) -> str:
    """The text of a small file; empty when it can't be read."""
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return ""
    try:
        data = b""
        while len(data) < _BYTES_MAX and (more := posix.read(file, 65536)):
            data += more
        return data.decode("utf-8", "replace")
    except OSError:  # a folder can be opened, and not read
        return ""
    finally:
        posix.close(file)

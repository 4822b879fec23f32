"""Which folder may include which: the table of CONTRIBUTING.md, as data."""

from tidy_rules.cpp import includes
from tidy_rules.tree import Finding, is_test, line_of

# Bottom to top. A folder may include itself and what its row names; "x/" stands for a folder with all below it,
# "x" for its own files only. A folder without a row has the row of the nearest folder above it, plus that
# folder's own files, and not its siblings: a new subfolder that others may include needs a row.
ALLOWED = {
    "base": [],
    "runtime": ["base/"],
    "runtime/asio": ["base/", "runtime"],
    "runtime/tls": ["base/", "runtime"],
    "runtime/http": ["base/", "runtime", "runtime/tls"],
    "protocol": ["base/", "protocol/"],
    "protocol/random": ["base/", "protocol"],
    "object_store": ["base/", "runtime/"],
    "metadata": ["base/", "runtime/", "object_store/"],
    "metadata/state": ["base/"],
    "metadata/log": ["base/", "runtime/", "object_store/", "metadata", "metadata/state"],
    "metadata/client": ["base/", "runtime/", "object_store/", "metadata", "metadata/state", "metadata/log"],
    "storage": ["base/", "runtime/", "protocol/", "object_store/", "metadata/"],
    "storage/format": ["base/", "protocol/", "metadata/state"],
    "storage/cache": ["base/", "runtime/", "object_store/", "metadata/state", "storage", "storage/format"],
    "storage/ingest": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage", "storage/format",
                       "storage/cache"],
    "storage/fetch": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage", "storage/format",
                      "storage/cache"],
    "storage/maintenance": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage",
                            "storage/format", "storage/cache", "storage/fetch"],
    "client": ["base/", "runtime/", "protocol/"],
    # The files of broker/ itself put its parts together, so they may include them all.
    "broker": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "broker/"],
    "broker/settings": ["base/", "runtime/"],
    "broker/security": ["base/", "runtime/", "protocol/", "metadata/"],
    "broker/group": ["base/", "runtime/", "protocol/", "metadata/", "broker/security"],
    "broker/transaction": ["base/", "runtime/", "protocol/", "metadata/", "broker/security"],
    "broker/handlers": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/",
                        "broker/settings", "broker/security", "broker/group", "broker/transaction"],
    "broker/server": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/",
                      "broker/settings", "broker/security", "broker/group", "broker/transaction",
                      "broker/handlers"],
    "broker/admin": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/",
                     "broker/settings", "broker/security", "broker/group", "broker/transaction",
                     "broker/handlers", "broker/server"],
    "apps": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "broker/"],
    "sim": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "broker/",
            "apps/", "sim/"],
    "sim/checkers": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "sim"],
    "sim/workload": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "broker/",
                     "sim", "sim/checkers"],
    "sim/scenarios": ["base/", "runtime/", "protocol/", "object_store/", "metadata/", "storage/", "client/", "broker/",
                      "sim", "sim/checkers", "sim/workload"],
}
TOP_FOLDERS = sorted({folder.split("/")[0] for folder in ALLOWED})

# (start of a system header's name, folders that may include it, what to do instead)
SYSTEM_HEADERS = [
    ("boost/asio", ("runtime/asio/",), "use the seam in runtime/"),
    ("boost/beast", ("runtime/http/", "runtime/asio/"), "use runtime/http/"),
    ("thread", ("runtime/asio/",), "use the seam in runtime/ (spawn, offload)"),
    ("openssl/ssl", ("runtime/tls/",), "use runtime/tls/"),
    ("sqlite3.h", ("metadata/log/",), "SQLite belongs to the metadata log's host"),
    ("grpc", ("metadata/log/",), "etcd belongs to the metadata log's host"),
    ("format", (), "libstdc++ 12 has none; use fmt"),
]


def _may_include(path, target):
    """Whether a file of src/ may include the header `target` (both relative to src/)."""
    folder, target_folder = path.rpartition("/")[0], target.rpartition("/")[0]
    if folder == target_folder:
        return True
    row = folder
    while row and row not in ALLOWED:
        row = row.rpartition("/")[0]
    if not row:
        return False
    if target_folder == row:
        return True
    # A row's subfolders without a row of their own belong to it: it may include them, they not each other.
    if _is_of(target_folder, row):
        own, other = (name[len(row) + 1:].split("/")[0] for name in (folder, target_folder))
        return not own or own == other
    # Only "x/" entries reach what has a row of its own below x.
    return any(target.startswith(entry) if entry.endswith("/") else _is_of(target_folder, entry)
               for entry in ALLOWED[row])


def _is_of(target_folder, entry):
    """Whether the folder is `entry`, or one below it that has no row of its own."""
    if target_folder == entry:
        return True
    return target_folder.startswith(entry + "/") and not any(
        target_folder == row or target_folder.startswith(row + "/") for row in ALLOWED if row.startswith(entry + "/"))


def check(tree):
    findings = []
    headers = {path.removeprefix("src/") for path in tree.sources if path.endswith(".h")}
    for full_path in tree.sources:
        path, code = full_path.removeprefix("src/"), tree.code(full_path)
        for position, name, quoted in includes(code):
            line = line_of(code, position)
            if quoted:
                message = _quoted_include(path, name, headers)
            else:
                message = _system_include(path, name)
            if message:
                findings.append(Finding(full_path, line, "include", message))
    return findings


def _quoted_include(path, name, headers):
    top = name.split("/")[0]
    if "/" not in name or top not in TOP_FOLDERS:
        return f'"{name}" does not start at src/, as every include of our own does'
    if name.endswith(".h") and name not in headers and not name.startswith("protocol/"):
        return f'"{name}" does not exist'  # only protocol/ has generated headers
    if is_test(name) and path.endswith(".cc") and not is_test(path):
        return f'"{name}" is for tests only'
    # Tests of any folder may run on the simulated world, which nothing else may know, and on the real one.
    if is_test(path) and (top == "sim" or name.startswith("runtime/asio/")):
        return None
    if not _may_include(path, name):
        folder = path.rpartition("/")[0]
        return f'{folder} may not include "{name}" (the table is in tools/tidy_rules/layers.py)'
    return None


def _system_include(path, name):
    for start, folders, instead in SYSTEM_HEADERS:
        matches = name == start or name.startswith((start + "/", start + "."))
        if matches and not path.startswith(tuple(folders)) and not (start == "thread" and is_test(path)):
            return f"<{name}> is not for this folder: {instead}"
    return None

"""The list of all scripts. `@script(...)` names the APIs that a script is about: it runs if both brokers serve them.
One with first=True runs before all others, as it looks at everything that there is."""

from collections import namedtuple

SCRIPTS = []
Script = namedtuple("Script", "name apis is_first play")


def script(*apis, first=False):
    def add(function):
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        SCRIPTS.append(Script(name, apis, first, function))
        return function
    return add

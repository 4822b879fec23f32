"""Each rule of tools/tidy.py on a small tree that breaks it, and on one that does not."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from tidy import findings_of  # noqa: E402
from tidy_rules import cpp  # noqa: E402

# A tree in order, to which each test adds its fault.
CLEAN = {
    "README.md": "# A project\n\nSee [the index](docs/README.md).\n",
    "docs/README.md": "# Documents\n\n- [Traps](traps.md)\n",
    "docs/traps.md": "# Traps\n\nBack to [the index](README.md).\n",
    "src/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(runtime)\n",
    "src/base/README.md": "# base\n",
    "src/base/CMakeLists.txt": "varve_module(base)\n",
    "src/base/bytes.h": "#pragma once\nint size_of(int value);\n",
    "src/base/bytes.cc": '#include "base/bytes.h"\n\nint size_of(int value) { return value; }\n',
    "src/runtime/README.md": "# runtime\n",
    "src/runtime/CMakeLists.txt": "varve_module(runtime DEPS varve_base)\n",
    "src/runtime/runtime.h": '#pragma once\n#include "base/bytes.h"\n',
    "src/runtime/runtime.cc": '#include "runtime/runtime.h"\n',
}


class TidyCase(unittest.TestCase):
    def findings(self, changed):
        """Rule and path of what tidy says of the clean tree with the given files added; None removes one."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**CLEAN, **changed}.items():
                if text is None:
                    continue
                file = Path(folder) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return findings_of(folder)

    def assert_finds(self, rule, path, changed, count=1):
        found = self.findings(changed)
        self.assertEqual([(rule, path)] * count, [(finding.rule, finding.path) for finding in found],
                         "\n".join(map(str, found)))

    def assert_clean(self, changed):
        self.assertEqual([], [str(finding) for finding in self.findings(changed)])

    def folder(self, name, files):
        """The files of a folder below src/, with what a folder has to have."""
        top = name.split("/")[0]
        listing = CLEAN["src/CMakeLists.txt"] + f"add_subdirectory({name})\n"
        return {f"src/{top}/README.md": f"# {top}\n", f"src/{name}/CMakeLists.txt": "varve_module(x)\n",
                "src/CMakeLists.txt": listing, **{f"src/{name}/{file}": text for file, text in files.items()}}


class Layers(TidyCase):
    def test_the_clean_tree_is_clean(self):
        self.assert_clean({})

    def test_base_may_not_include_upwards(self):
        self.assert_finds("include", "src/base/bytes.cc",
                          {"src/base/bytes.cc": '#include "base/bytes.h"\n#include "runtime/runtime.h"\n'})

    def test_the_state_machine_includes_base_only(self):
        self.assert_clean(self.folder("metadata/state", {"apply.cc": '#include "base/bytes.h"\n'}))
        self.assert_finds("include", "src/metadata/state/apply.cc",
                          self.folder("metadata/state", {"apply.cc": '#include "runtime/runtime.h"\n'}))

    def test_a_row_of_a_subfolder_is_stronger_than_that_of_the_folder_above(self):
        files = self.folder("storage/format", {"wal.cc": '#include "runtime/runtime.h"\n'})
        self.assert_finds("include", "src/storage/format/wal.cc", files)

    def test_siblings_do_not_include_each_other(self):
        files = self.folder("broker/group", {"group.h": "#pragma once\n"})
        files["src/broker/transaction/CMakeLists.txt"] = ""
        files["src/CMakeLists.txt"] += "add_subdirectory(broker/transaction)\n"
        files["src/broker/transaction/end.cc"] = '#include "broker/group/group.h"\n'
        self.assert_finds("include", "src/broker/transaction/end.cc", files)
        files["src/broker/handlers/CMakeLists.txt"] = ""
        files["src/CMakeLists.txt"] += "add_subdirectory(broker/handlers)\n"
        files["src/broker/handlers/end.cc"] = files.pop("src/broker/transaction/end.cc")
        self.assert_clean(files)

    def test_a_folder_without_a_row_is_its_parents_and_not_its_siblings(self):
        files = self.folder("object_store/s3", {"client.cc": '#include "object_store/store.h"\n',
                                                "signer.h": "#pragma once\n"})
        files["src/object_store/store.h"] = "#pragma once\n"
        files["src/object_store/fs/CMakeLists.txt"] = ""
        files["src/CMakeLists.txt"] += "add_subdirectory(object_store/fs)\n"
        files["src/object_store/fs/fs.cc"] = '#include "object_store/s3/signer.h"\n'
        self.assert_finds("include", "src/object_store/fs/fs.cc", files)

    def test_only_tests_of_other_folders_may_include_the_simulator(self):
        files = self.folder("sim", {"world.h": "#pragma once\n"})
        self.assert_clean({**files, "src/runtime/sleep_test.cc": '#include "sim/world.h"\n'})
        self.assert_finds("include", "src/runtime/sleep.cc",
                          {**files, "src/runtime/sleep.cc": '#include "sim/world.h"\n'})

    def test_what_tests_share_is_for_tests_only(self):
        files = self.folder("runtime", {"sleep_testing.h": '#pragma once\n#include "sim/world.h"\n'})
        files |= self.folder("sim", {"world.h": "#pragma once\n"})
        include = '#include "runtime/sleep_testing.h"\n'
        self.assert_clean({**files, "src/runtime/sleep_test.cc": include})
        self.assert_finds("include", "src/runtime/sleep.cc",
                          {**files, "src/runtime/sleep_test.cc": include, "src/runtime/sleep.cc": include})

    def test_includes_start_at_src_and_exist(self):
        self.assert_finds("include", "src/base/bytes.cc", {"src/base/bytes.cc": '#include "bytes.h"\n'
                                                                                '#include "base/bytes.h"\n'})
        self.assert_finds("include", "src/runtime/runtime.cc",
                          {"src/runtime/runtime.cc": '#include "runtime/runtime.h"\n#include "base/gone.h"\n'})

    def test_asio_and_threads_stay_in_their_folder(self):
        self.assert_finds("include", "src/base/bytes.cc",
                          {"src/base/bytes.cc": '#include "base/bytes.h"\n#include <boost/asio.hpp>\n'
                                                "#include <thread>\n"}, count=2)
        self.assert_clean(self.folder("runtime/asio", {"loop.cc": "#include <boost/asio/post.hpp>\n"
                                                                  "#include <thread>\n"}))


class Names(TidyCase):
    def test_each_banned_name_is_found_outside_its_folder_and_not_inside(self):
        for name in ("asio::steady_timer timer;", "tcp::socket socket;", "ip::tcp::resolver r;", "signal_set s;",
                     "thread_pool pool;", "std::thread thread;", "auto t = std::chrono::system_clock::now();",
                     "auto t = steady_clock::now();", "std::random_device d;", "int i = rand();",
                     "asio::co_spawn(e, f(), x);"):
            with self.subTest(name):
                self.assert_finds("banned", "src/runtime/runtime.cc",
                                  {"src/runtime/runtime.cc": f'#include "runtime/runtime.h"\n{name}\n'})
                self.assert_clean(self.folder("runtime/asio", {"loop.cc": name + "\n"}))

    def test_names_in_comments_and_strings_are_free(self):
        self.assert_clean({"src/base/bytes.cc": '#include "base/bytes.h"\n// no steady_timer here\n'
                                                'auto a = "std::thread"; /* rand() */ auto b = R"x(sqlite3)x";\n'})

    def test_words_that_only_contain_a_banned_one_are_free(self):
        self.assert_clean({"src/base/bytes.cc": '#include "base/bytes.h"\nint operand(); int x = operand();\n'
                                                "int r = random.rand_of(3);\n"})

    def test_the_environment_is_read_by_settings_only(self):
        self.assert_finds("banned", "src/base/bytes.cc",
                          {"src/base/bytes.cc": '#include "base/bytes.h"\nauto v = std::getenv("X");\n'})
        self.assert_clean(self.folder("apps/varve", {"settings.cc": 'auto v = std::getenv("X");\n'}))

    def test_sqlite_belongs_to_the_log(self):
        self.assert_finds("banned", "src/runtime/runtime.cc",
                          {"src/runtime/runtime.cc": '#include "runtime/runtime.h"\nsqlite3* db;\n'})
        self.assert_clean(self.folder("metadata/log", {"sqlite.cc": "#include <sqlite3.h>\nsqlite3* db;\n"}))

    def test_the_state_machine_has_no_floating_point(self):
        self.assert_finds("banned", "src/metadata/state/apply.cc",
                          self.folder("metadata/state", {"apply.cc": "double mean = 0;\n"}))

    def test_planted_bugs_are_filled_under_sim_only(self):
        declared = {"src/base/bugs.h": "#pragma once\nstruct PlantedBugs { bool a = false; };\n"}
        use = '#include "base/bugs.h"\n'
        clean = use + "void f(PlantedBugs bugs = {}) { g(PlantedBugs{}); if (bugs.a == true) return; }\n"
        self.assert_clean({**declared, "src/runtime/x.cc": clean})
        for fill in ("PlantedBugs bugs{.a = true};", "g(PlantedBugs{true});", "bugs.a = true;", "bugs_.a = x;"):
            with self.subTest(fill):
                self.assert_finds("planted", "src/runtime/x.cc", {**declared, "src/runtime/x.cc": use + fill + "\n"})
                self.assert_clean({**declared, **self.folder("sim", {"x.cc": use + fill + "\n"})})

    def test_unfinished_work_and_places_of_one_machine(self):
        for text in ("TO" + "DO: later", "FIX" + "ME", "XX" + "X", "see /ro" + "ot/x", "https://py" + "pi.org/simple"):
            with self.subTest(text):
                rule = "place" if "/" in text else "unfinished"
                self.assert_finds(rule, "src/base/bytes.h",
                                  {"src/base/bytes.h": CLEAN["src/base/bytes.h"] + f"// {text}\n"})


class Sizes(TidyCase):
    LONG = "#include \"base/bytes.h\"\nint f() {\n" + "  g();\n" * 69 + "}\n"

    def test_a_long_file_and_a_long_function(self):
        self.assert_finds("size", "src/base/bytes.cc",
                          {"src/base/bytes.cc": '#include "base/bytes.h"\n' + "int a;\n" * 500})
        self.assert_finds("size", "src/base/bytes.cc", {"src/base/bytes.cc": self.LONG})
        self.assert_clean({"src/base/bytes.cc": self.LONG.replace("  g();\n", "", 1)})

    def test_an_exception_holds_for_its_size_exactly(self):
        def listed(lines):
            return {"src/base/bytes.cc": self.LONG,
                    "tools/tidy_exceptions.txt": f"function src/base/bytes.cc f {lines}\n"}

        self.assert_clean(listed(71))
        self.assert_finds("size", "src/base/bytes.cc", listed(70))
        self.assert_finds("size", "tools/tidy_exceptions.txt", listed(72))

    def test_an_exception_that_is_not_needed_has_to_go(self):
        self.assert_finds("size", "tools/tidy_exceptions.txt",
                          {"tools/tidy_exceptions.txt": "file src/base/bytes.cc - 600\n"})


class Functions(unittest.TestCase):
    def names(self, text):
        return [(name, lines) for name, _, lines in cpp.functions(cpp.blank(text))]

    def test_functions_are_found_wherever_they_stand(self):
        text = """
namespace a::b {
struct Point { int x{0}; int y = 0; int sum() const { return x + y; } };
enum class Kind : uint8_t { kOne = 1 };
class Big : public Base<int> {
 public:
  explicit Big(int x) : first_{x}, second_(2) {
    if (x) { run(); }
  }
  bool operator==(const Big& other) const { return true; }
 private:
  int first_{1};
};
const int kTable[] = {1, 2};
Task<void> Big::loop(std::function<void()> f) {
  auto g = [&] { return 1; };
  for (;;) {
    co_await f();
  }
}
TEST(Bytes, read_back) { EXPECT_EQ(1, 1); }
}  // namespace a::b
"""
        self.assertEqual([("sum", 1), ("Big", 3), ("operator==", 1), ("Big::loop", 6), ("Bytes.read_back", 1)],
                         self.names(text))

    def test_braces_in_literals_do_not_count(self):
        self.assertEqual([("f", 3)], self.names('int f() {\n  return g("}{", \'{\', 1\'000);\n}\n'))


class Layout(TidyCase):
    def test_folder_names_that_fit_anything(self):
        self.assert_finds("folder", "src/base/utils", {"src/base/utils/notes.txt": "x\n"})

    def test_a_top_folder_without_a_readme(self):
        self.assert_finds("readme", "src/runtime/README.md", {"src/runtime/README.md": None})

    def test_a_header_that_nothing_includes(self):
        self.assert_finds("dead", "src/base/lonely.h", {"src/base/lonely.h": "#pragma once\n"})

    def test_sources_that_nothing_builds(self):
        self.assert_finds("dead", "src/base/deep", {"src/base/deep/x.cc": "\n"})
        self.assert_finds("dead", "src/base/deep", {"src/base/deep/x.cc": "\n", "src/base/deep/CMakeLists.txt": "\n"})

    def test_a_header_without_pragma_once(self):
        self.assert_finds("header", "src/base/bytes.h", {"src/base/bytes.h": "int size_of(int value);\n"})

    def test_stored_enums_have_values(self):
        def of(text):
            return self.folder("storage/format", {"x.h": "#pragma once\n" + text, "x.cc": '#include "storage/format/x.h"\n'})

        self.assert_finds("enum", "src/storage/format/x.h", of("enum class Kind : uint8_t { kOne, kTwo };\n"))
        self.assert_clean(of("enum class Kind : uint8_t { kOne = 1, kTwo = 2 };\nenum class Other { kA, kB };\n"))
        self.assert_clean(of("enum class ReadErrc : uint8_t { kOne, kTwo };\n"))

    def test_an_enum_anywhere_gives_all_its_values_or_none(self):
        def of(text):
            return {"src/base/bytes.h": "#pragma once\n" + text}

        self.assert_finds("enum", "src/base/bytes.h", of("enum class Kind : uint8_t { kOne = 1, kTwo };\n"))
        self.assert_clean(of("enum class Kind : uint8_t { kOne, kTwo };\n"))

    def test_documents_have_titles_and_links_that_lead_somewhere(self):
        self.assert_finds("title", "docs/traps.md", {"docs/traps.md": "Traps\n"})
        self.assert_finds("title", "docs/traps.md", {"docs/traps.md": "# Documents\n"})
        self.assert_finds("link", "docs/traps.md", {"docs/traps.md": "# Traps\n\n[x](gone.md#part)\n"})
        self.assert_clean({"docs/traps.md": "# Traps\n\n`[x](gone.md)` [y](#part)\n"})

    def test_the_index_names_every_document(self):
        self.assert_finds("index", "docs/README.md", {"docs/decisions/001-x.md": "# Why x\n"})

    def test_what_gitignore_names_is_not_looked_at_without_git_either(self):
        long = "\n" * 600
        self.assert_finds("size", "building/x.cc", {"building/x.cc": long})
        ignored = {".gitignore": "/build/\n__pycache__/\n", "build/src/x.cc": long, "tools/__pycache__/x.py": long}
        self.assert_clean(ignored)

    def test_a_case_that_names_a_test_is_in_its_list(self):
        test, cases = {"tests/e2e/test_x.py": "def test_c029_x(): pass\n"}, "# Cases\n\n| | |\n|---|---|\n| C028 | x |\n"
        index = {"docs/README.md": CLEAN["docs/README.md"] + "[cases](cases.md)\n"}
        self.assert_finds("case", "tests/e2e/test_x.py", test)
        self.assert_finds("case", "tests/e2e/test_x.py", test | index | {"docs/cases.md": cases})
        self.assert_finds("case", "src/base/x_test.cc", {"src/base/x_test.cc": "TEST(X, C030Holds) {}\n"})
        self.assert_clean(test | index | {"docs/cases.md": cases.replace("C028", "C029")})


if __name__ == "__main__":
    unittest.main()

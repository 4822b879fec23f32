#!/usr/bin/env python3
"""What the schema reader takes, and what it refuses before it becomes C++ that does not hold its promises."""

import unittest

import cpp
import schema

HEAD = "request XRequest api 7 versions 1-9 flexible 4+\n"


class SchemaTest(unittest.TestCase):
    def refuse(self, body, reason):
        with self.assertRaisesRegex((schema.SchemaError, SystemExit), reason):
            message = schema.parse(HEAD + body)
            cpp.Emitter(message).declare()
            cpp.Emitter(message).define()

    def test_reads_every_part_of_a_field(self):
        message = schema.parse(HEAD + '  Ids []string?3+ 2-5 = null @topicName key\n  Note string 4+ tag 2 = "" secret\n')
        ids, note = message.fields
        self.assertEqual((ids.array, ids.type, ids.versions, ids.nullable), (True, "string", (2, 5), (3, 5)))
        self.assertEqual((ids.default, ids.entity, ids.map_key), ("null", "topicName", True))
        self.assertEqual((note.versions, note.tag, note.default, note.secret), ((4, 9), 2, "", True))

    def test_least_size_of_an_item_is_that_of_its_smallest_version(self):
        message = schema.parse(HEAD + "  Items []Item\n    Name string\n    Count int32 6+\n")
        # Version 1: two bytes of length. Version 4: one, and one for the tags.
        self.assertEqual(schema.min_wire_bytes(message, message.structs[0]), 2)

    def test_an_item_that_takes_no_bytes_makes_any_count_believable(self):
        self.refuse("  Items []Item\n    Name string 4+\n", "Item can be empty")

    def test_a_struct_that_holds_itself_would_nest_without_end(self):
        self.refuse("  Root Node\nstruct Node\n  Children []Node\n", "Node contains itself")

    def test_types_must_exist_and_be_defined_once(self):
        self.refuse("  Root Nodes\n", "unknown type Nodes")
        self.refuse("  A Node\n    X int8\n  B Node\n    Y int8\n", "Node defined twice")

    def test_versions_must_lie_within_those_of_the_struct(self):
        self.refuse("  A int8 0-3\n", "outside 1-9")
        self.refuse("  A []Inner 5+\n    B int8 4+\n", "outside 5-9")

    def test_records_in_a_tagged_field_could_not_be_referenced(self):
        self.refuse("  A records? 4+ tag 0\n", "default|records in a tagged field")

    def test_odd_lines(self):
        self.refuse("  A int8 nonsense\n", "unknown word nonsense")
        self.refuse("      A int8\n", "indented too far")
        self.refuse("  Delete int8\n", "cannot be used in C")


if __name__ == "__main__":
    unittest.main()

#include "base/text_table.h"

#include "support/catch.h"

using ddl::TextTable;

TEST_CASE("columns are as wide as their widest cell, and no line ends with blanks") {
  TextTable table;
  table.add({"host", "CPUs", "NIC"});
  table.add({"node10", "4", ""});
  table.add({"n1", "16"});
  table.add({});
  CHECK(table.text() == "host    CPUs  NIC\nnode10  4\nn1      16\n\n");
  CHECK(table.text(TextTable::Align::kRight, "> ") ==
        "> host    CPUs  NIC\n> node10     4\n> n1        16\n\n");
}

TEST_CASE("a column whose cells are all empty is omitted") {
  TextTable table;
  table.add({"a", "", "c"});
  table.add({"1", "", "3"});
  CHECK(table.text() == "a  c\n1  3\n");
}

TEST_CASE("text behind the last cell makes no column wider") {
  TextTable table;
  table.add({"host", "answer"});
  table.add({"node1"}, "failed: Connection refused");
  table.add({"n2", "0.1 s"}, "slow");
  CHECK(table.text() == "host   answer\nnode1  failed: Connection refused\nn2     0.1 s   slow\n");
}

TEST_CASE("a header has a line below it") {
  TextTable table({"model", "8 B"});
  CHECK(table.is_empty());
  table.add({"ring", "1.25 us"});
  CHECK_FALSE(table.is_empty());
  CHECK(table.text(TextTable::Align::kRight, "  ") ==
        "  model      8 B\n  --------------\n  ring   1.25 us\n");
  CHECK(TextTable().is_empty());
}

TEST_CASE("attributes of a terminal and the bytes of one character take as many columns as they show") {
  TextTable table;
  table.add({"\x1b[1;31mbad!\x1b[0m", "x"});
  table.add(
      {"\xc2\xb1"
       "1",
       "y"});
  CHECK(table.text() ==
        "\x1b[1;31mbad!\x1b[0m  x\n\xc2\xb1"
        "1    y\n");
}

#include "launcher/job/host_list.h"

#include "base/text.h"
#include "launcher/job/host_name.h"
#include "launcher/job_text.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::text_of;

namespace {

std::string listed_hosts(std::string_view text) {
  const auto nodes = parse_host_list(text);
  return nodes ? text_of(*nodes) : "error: " + nodes.error().message();
}

std::string list_refusal(std::string_view text) {
  const auto nodes = parse_host_list(text);
  if (nodes) return "accepted as " + text_of(*nodes);
  CHECK(nodes.error().code() == ddl::ErrorCode::kInvalidArgument);
  CHECK(nodes.error().message().find('\n') == std::string::npos);
  return nodes.error().message();
}

}  // namespace

TEST_CASE("hosts with and without slots, in their order") {
  CHECK(listed_hosts("a:2,b:4") == "a:2 b:4");
  CHECK(listed_hosts("a") == "a");
  CHECK(listed_hosts("b,a:1") == "b a:1");
  CHECK(listed_hosts("node-1.site.example:16") == "node-1.site.example:16");
  CHECK(listed_hosts("10.0.0.1:2,under_score") == "10.0.0.1:2 under_score");
  CHECK(listed_hosts(" a:2 ,\tb:4 ") == "a:2 b:4");
  CHECK(listed_hosts("a:007") == "a:7");
  CHECK(listed_hosts("a 4 b 8") == "a:4 b:8");  // LSB_MCPU_HOSTS
  CHECK(listed_hosts("a 4, b:2") == "a:4 b:2");
}

TEST_CASE("users, addresses and ranges") {
  CHECK(listed_hosts("me@a:2") == "me@a:2");
  CHECK(listed_hosts("me@corp.example@a") == "me@corp.example@a");
  CHECK(listed_hosts("[2001:db8::1]:2,me@[fe80::1%eth0.5]") == "2001:db8::1:2 me@fe80::1%eth0.5");
  CHECK(listed_hosts("[::1]") == "::1");
  CHECK(listed_hosts("[::ffff:10.0.0.1]:3") == "::ffff:10.0.0.1:3");
  CHECK(listed_hosts("node[1-3,7]:4,me@n[01-02]-ib0") ==
        "node1:4 node2:4 node3:4 node7:4 me@n01-ib0 me@n02-ib0");
}

TEST_CASE("the same host named twice is one with the sum of the slots") {
  CHECK(listed_hosts("a:2,b:1,a:3") == "a:5 b:1");
  CHECK(listed_hosts("node1:1,NODE1:1") == "node1:2");
  CHECK(listed_hosts("n[1-3]:2,n2:1") == "n1:2 n2:3 n3:2");
  CHECK(listed_hosts("me@a:1,me@a:1") == "me@a:2");
}

TEST_CASE("the same host named twice must be described the same way") {
  CHECK_THAT(list_refusal("a,a"), Catch::Contains("\"a\": a is named twice") && Catch::Contains("as a:2"));
  CHECK_THAT(
      list_refusal("a:2,a"),
      Catch::Contains("\"a\": a is named twice, but not each time with slots") && Catch::Contains("as a:2"));
  CHECK_THAT(list_refusal("a,a:2"), Catch::Contains("named twice, but not each time with slots"));
  CHECK_THAT(list_refusal("me@a:1,you@a:1"), Catch::Contains("different users"));
  CHECK_THAT(list_refusal("me@a:1,a:1"), Catch::Contains("different users"));
  CHECK_THAT(list_refusal("a:1000000,a:1"), Catch::Contains("more than 1000000 slots"));
}

TEST_CASE("slots are a positive integer") {
  CHECK(list_refusal("a:four") == "\"a:four\": slots must be a positive integer, found \"four\"");
  for (const char* slots : {"", "0", "00", "-1", "+1", "1.5", "1e3", "0x2", " 2", "2 ", "2x", "\xc2\xb2"}) {
    const std::string text = "a:" + std::string(slots) + ",b:1";
    INFO(text);
    if (ddl::trim(slots) == "2" && std::string_view(slots).back() == ' ') continue;  // blanks around an entry
    CHECK_THAT(list_refusal(text), Catch::Contains("slots must be a positive integer, found \""));
  }
  CHECK_THAT(list_refusal("a:1000001"), Catch::Contains("slots must be at most 1000000"));
  CHECK_THAT(list_refusal("a:99999999999999999999"), Catch::Contains("slots must be at most 1000000"));
}

TEST_CASE("text that ssh or a shell could interpret is refused as a host or a user") {
  for (const char* text : {"-oProxyCommand=id",
                           "-a:2",
                           "me@-a",
                           ".a",
                           "a b",
                           "a;id",
                           "a$(id)",
                           "a`id`",
                           "a|b",
                           "a&b",
                           "a'b",
                           "a\"b",
                           "a\\b",
                           "a/b",
                           "a*",
                           "a?",
                           "a=b",
                           "a!b",
                           "~a",
                           "a%h",
                           "a<b",
                           "a>b",
                           "a{1}",
                           "a(b)",
                           "a\x1b[31m",
                           "a\x7f",
                           "a\nb",
                           "\xc3\xa4",
                           "-l@a",
                           "m e@a",
                           "me;id@a",
                           "$USER@a",
                           "%r@a",
                           "me:pw@a",
                           "@a",
                           "me@",
                           "-[1-2]"}) {
    INFO(text);
    CHECK_FALSE(parse_host_list(text));
  }
  CHECK_FALSE(parse_host_list(std::string_view("a\0b", 3)));
  CHECK_FALSE(parse_host_list(std::string(254, 'a')));
  CHECK(parse_host_list(std::string(253, 'a')));
  CHECK_FALSE(parse_host_list(std::string(65, 'u') + "@a"));
}

TEST_CASE("a message escapes control characters") {
  CHECK_THAT(list_refusal("a\x1b[31m"),
             Catch::Contains("a\\x1b[31m") || Catch::Contains("brackets do not match"));
  CHECK(in_double_quotes("a\x1b\n\xff") == "\"a\\x1b\\x0a\\xff\"");
  CHECK(in_double_quotes(std::string(100, 'a')) == "\"" + std::string(60, 'a') + "...\"");
}

TEST_CASE("ambiguous entries are refused") {
  CHECK_THAT(list_refusal("2001:db8::1"), Catch::Contains("[2001:db8::1]:SLOTS"));
  CHECK_THAT(list_refusal("a:22:4"), Catch::Contains("more than one colon"));
  CHECK_THAT(list_refusal("4"), Catch::Contains("\"4\" is a number, not the name of a host"));
  CHECK_THAT(list_refusal("[1-3]"), Catch::Contains("is a number, not the name of a host"));
  CHECK_THAT(list_refusal("[2001:db8::1]4"), Catch::Contains("unexpected text after the IPv6 address"));
  CHECK_THAT(list_refusal("[2001:db8::1"), Catch::Contains("brackets do not match"));
  CHECK_THAT(list_refusal("[2001:db8::zz]"), Catch::Contains("\"2001:db8::zz\" is not an IPv6 address"));
  // A hostfile may hold any byte.
  CHECK_THAT(list_refusal(std::string("[fe80::\0a%eth0]", 15)),
             Catch::Contains("\"fe80::\\x00a%eth0\" is not an IPv6 address"));
  CHECK_THAT(list_refusal("[2001:db8::1]x[1-2]"), Catch::Contains("unexpected text after the IPv6 address"));
}

TEST_CASE("an empty entry is refused") {
  for (const char* text : {"", ",", "a,", ",a", "a,,b", " ", "a, ,b", ":2", "me@:2"}) {
    INFO(text);
    CHECK_THAT(list_refusal(text), Catch::Contains("the name of a host is missing"));
  }
}

TEST_CASE("the number of hosts of a list is limited") {
  CHECK(parse_host_list("n[1-65536]")->size() == kMaxHosts);
  CHECK_THAT(list_refusal("n[1-65536],b"), Catch::Contains("more than 65536 hosts"));
  CHECK_THAT(list_refusal("n[1-99999]:2"), Catch::Contains("more than 65536 hosts"));
  CHECK_THAT(list_refusal("n[1-40000],m[1-40000]"), Catch::Contains("more than 65536 hosts"));
  // Also if they are all the same host: parsing them takes time.
  std::string same = "n[1-65536]:1";
  for (int i = 0; i < 15; ++i) same += ",n[1-65536]:1";
  CHECK_THAT(list_refusal(same), Catch::Contains("more than 16960 hosts"));
}

TEST_CASE("names only") {
  CHECK(ddl::join(*parse_host_names("a,n[1-2],[::1],a"), " ") == "a n1 n2 ::1 a");
  for (const char* text : {"a:2", "me@a", "", "a,,b", "-a"}) {
    INFO(text);
    CHECK_FALSE(parse_host_names(text));
  }
  CHECK_THAT(parse_host_names("a:2").error().message(), Catch::Contains("only names of hosts"));
}

#include "launcher/job/host_list.h"

#include "launcher/job_text.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::text_of;

namespace {

std::string hosts_of(std::string_view text) {
  const auto nodes = parse_hostfile(text, "hosts.txt");
  return nodes ? text_of(*nodes) : "error: " + nodes.error().message();
}

std::string file_refusal(std::string_view text) {
  const auto nodes = parse_hostfile(text, "hosts.txt");
  if (nodes) return "accepted as " + text_of(*nodes);
  CHECK(nodes.error().code() == ddl::ErrorCode::kInvalidArgument);
  CHECK(nodes.error().message().find('\n') == std::string::npos);
  return nodes.error().message();
}

}  // namespace

TEST_CASE("every way of writing a host and its slots") {
  CHECK(hosts_of("a slots=4\nb:4\nc 4\nd\n") == "a:4 b:4 c:4 d");
  CHECK(hosts_of("a slots=2 max_slots=4") == "a:2,max=4");
  CHECK(hosts_of("a max-slots=4") == "a:4,max=4");
  CHECK(hosts_of("a slots = 2 max_slots= 4 port =22") == "a:2,max=4,port=22");
  CHECK(hosts_of("a port=2222 user=me slots=1") == "me@a:1,port=2222");
  CHECK(hosts_of("me@a:1 port=2222") == "me@a:1,port=2222");
  CHECK(hosts_of("node[1-2,7] slots=2\nn[01-02]-ib0:1") == "node1:2 node2:2 node7:2 n01-ib0:1 n02-ib0:1");
  CHECK(hosts_of("[2001:db8::1]:2\n[2001:db8::2] slots=3 user=me") == "2001:db8::1:2 me@2001:db8::2:3");
}

TEST_CASE("max_slots alone are the slots, and Open MPI's other names are known") {
  CHECK(hosts_of("aa slots=2\nbb max_slots=4") == "aa:2 bb:4,max=4");
  CHECK(hosts_of("a max_slots=2\na max_slots=2") == "a:4,max=4");
  CHECK(hosts_of("a count=3 cpu_max=4\nb cpu=2\nc slots=1 slots-max=2 username=me\nd max-count=2") ==
        "a:3,max=4 b:2 me@c:1,max=2 d:2,max=2");
  CHECK(file_refusal("a slots=2 cpu=2") == "hosts.txt:1: slots is given twice");
}

TEST_CASE("hostfiles of Grid Engine, LSF, MPICH and Intel MPI are read") {
  CHECK(hosts_of("node01.site 8 all.q@node01.site UNDEFINED\nnode02.site 4 all.q@node02.site <NULL>\n"
                 "node01.site 2 gpu.q@node01.site UNDEFINED\n") == "node01.site:10 node02.site:4");
  CHECK(hosts_of("n1 2 <NULL> <NULL>") == "n1:2");
  // LSB_DJOB_HOSTFILE, and LSB_MCPU_HOSTS written into a file.
  CHECK(hosts_of("n1\nn1\nn2\nn2\n") == "n1:2 n2:2");
  CHECK(hosts_of("n1 16 n2 16 n3 4\n") == "n1:16 n2:16 n3:4");
  CHECK(hosts_of("n1 8 me@n2 4\nn3 2 me@corp.example@n4 1\n") == "n1:8 me@n2:4 n3:2 me@corp.example@n4:1");
  CHECK(hosts_of("n5 2 all.q@n5 1") == "n5:2");  // Grid Engine's, with a processor
  CHECK(hosts_of("n1:4\nn2:2 user=me # the second\n") == "n1:4 me@n2:2");
  const auto bound = parse_hostfile("n1:2 binding=user:0,1\nn2 2 all.q@n2 0,0:0,1\nn3:1", "hosts.txt");
  REQUIRE(bound);
  CHECK(text_of(*bound) == "n1:2 n2:2 n3:1");
  CHECK((*bound)[0].unused_binding == "user:0,1");
  CHECK((*bound)[1].unused_binding == "0,0:0,1");
  CHECK((*bound)[2].unused_binding.empty());
  CHECK(file_refusal("n1:2 4 n2 4") == "hosts.txt:1: slots is given twice");
  CHECK(file_refusal("n1:2 8 all.q@n1 UNDEFINED") == "hosts.txt:1: slots is given twice");
  CHECK(file_refusal("n1 binding=") == "hosts.txt:1: binding= has no value");
  CHECK(file_refusal("n1 binding=rr binding=rr") == "hosts.txt:1: binding is given twice");
  CHECK_THAT(file_refusal("n1 4 n2 four"), Catch::Contains("found \"n2\""));
}

TEST_CASE("comments, blank lines, blanks, CRLF and a byte order mark") {
  CHECK(hosts_of("# the cluster\n\n  a slots=1 # the fast one\n\t\n#b\nc#d\n\t c2 \t 3 \t\n") ==
        "a:1 c c2:3");
  CHECK(hosts_of("a:1\r\n\r\n# x\r\nb slots=2\r\n") == "a:1 b:2");
  CHECK(hosts_of("\xef\xbb\xbf"
                 "a:1\n") == "a:1");
  CHECK(hosts_of("a:1") == "a:1");
}

TEST_CASE("the same host on several lines is one with the sum of the slots") {
  CHECK(hosts_of("a:2\nb:1\na slots=3\n") == "a:5 b:1");
  CHECK(hosts_of("a 1 max_slots=2\na 1 max_slots=2\n") == "a:2,max=4");
  CHECK(file_refusal("a:2\nb\na\n") ==
        "hosts.txt:3: a is named twice, but not each time with slots; name it once, as a:2");
  CHECK_THAT(file_refusal("a:1 port=22\na:1"),
             Catch::Contains("hosts.txt:2: a is named twice, with different ports"));
  CHECK_THAT(file_refusal("a:1 user=x\na:1 user=y"), Catch::Contains("different users"));
  CHECK_THAT(file_refusal("a:1 max_slots=2\na:1"), Catch::Contains("not each time with max_slots"));
}

TEST_CASE("a node file of PBS names a host once for each of its slots") {
  CHECK(hosts_of("n1\nn1\nn2\nn2\n") == "n1:2 n2:2");
  CHECK(hosts_of("n1\nn2\nN1\nn3\nn4:8\n") == "n1:2 n2:1 n3:1 n4:8");
  CHECK(hosts_of("n1\nn2\n") == "n1 n2");
  CHECK(hosts_of("n1 port=22\nn1 port=22\n") == "n1:2,port=22");
  std::string large;
  for (int i = 0; i < 70000; ++i) large += "n1\n";
  CHECK(hosts_of(large) == "n1:70000");
}

TEST_CASE("an error names the file and the line, and quotes its text") {
  CHECK(file_refusal("a\n\n# x\nb:1\nc 2\nd slots=1\ne slots=four\n") ==
        "hosts.txt:7: slots must be a positive integer, found \"four\"");
  CHECK(file_refusal("a\r\nb:x\r\n") == "hosts.txt:2: slots must be a positive integer, found \"x\"");
  CHECK(file_refusal("a max_slots=0") == "hosts.txt:1: max_slots must be a positive integer, found \"0\"");
  CHECK(file_refusal("a port=65536") ==
        "hosts.txt:1: port must be a number from 1 to 65535, found \"65536\"");
  CHECK(file_refusal("a cpus=4") ==
        "hosts.txt:1: only slots=N, max_slots=N, port=N and user=NAME may follow a host, found \"cpus=4\"");
  CHECK_THAT(file_refusal("a b"), Catch::Contains("found \"b\""));
  CHECK_THAT(file_refusal("a slots"), Catch::Contains("found \"slots\""));
  CHECK_THAT(file_refusal("a slots="), Catch::Contains("found \"\""));
  CHECK_THAT(file_refusal("a,b"), Catch::Contains("one host on each line"));
  CHECK_THAT(file_refusal("a, b"), Catch::Contains("one host on each line"));
  CHECK_THAT(file_refusal("-oProxyCommand=id"), Catch::Contains("hosts.txt:1: a host is named with"));
  CHECK_THAT(file_refusal("a user=-l"), Catch::Contains("hosts.txt:1: a user is named with"));
  CHECK_THAT(file_refusal("a\rb"), Catch::Contains("a\\x0db"));
  CHECK_THAT(file_refusal("2001:db8::1 slots=2"), Catch::Contains("more than one colon"));
  CHECK_THAT(file_refusal("4"), Catch::Contains("is a number"));
}

TEST_CASE("a setting that is given twice on one line is refused") {
  CHECK(file_refusal("a:2 slots=2") == "hosts.txt:1: slots is given twice");
  CHECK(file_refusal("a 2 2") == "hosts.txt:1: slots is given twice");
  CHECK(file_refusal("me@a user=me") == "hosts.txt:1: user is given twice");
  CHECK(file_refusal("a port=22 port=22") == "hosts.txt:1: port is given twice");
  CHECK(file_refusal("a max_slots=2 max-slots=2") == "hosts.txt:1: max_slots is given twice");
}

TEST_CASE("fewer max_slots than slots are refused") {
  CHECK(file_refusal("a slots=4 max_slots=2") == "hosts.txt:1: max_slots is 2, fewer than the 4 slots");
  CHECK(hosts_of("a slots=4 max_slots=4") == "a:4,max=4");
}

TEST_CASE("a file without a host is refused, and named") {
  for (const char* text : {"", "\n", "# nothing\n", "\xef\xbb\xbf", "\r\n"}) {
    CHECK(file_refusal(text) == "hosts.txt names no host");
  }
}

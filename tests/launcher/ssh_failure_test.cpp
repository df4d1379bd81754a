#include "launcher/fleet/ssh.h"
#include "launcher/fleet/stream_tail.h"

#include "support/catch.h"

using namespace ddl::launcher;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

ddl::Error failure(int exit_code, std::string_view errors, std::string_view noise = "") {
  return describe_ssh_failure({"ssh", "/opt/ddlrun", exit_code << 8, noise, errors});
}

}  // namespace

TEST_CASE("a message of ssh about a host becomes one sentence that quotes it") {
  struct Case {
    const char* errors;
    const char* begins;
    bool retry = false;
  };
  const Case cases[] = {
      {"ssh: Could not resolve hostname nod3: Name or service not known\r\n", "its name was not found"},
      {"ssh: connect to host node3 port 22: Connection refused\r\n", "it refuses ssh connections"},
      {"ssh: connect to host node3 port 22: No route to host\r\n", "there is no route to it"},
      {"ssh: connect to host node3 port 22: Network is unreachable\r\n", "there is no route to its network"},
      {"ssh: connect to host node3 port 22: Connection timed out\r\n", "it does not answer"},
      {"Connection timed out during banner exchange\r\nConnection to 10.0.0.3 port 22 timed out\r\n",
       "it accepted the connection and then sent nothing", true},
      {"kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.3 port "
       "22\r\n",
       "it closed the connection before the key exchange", true},
      {"kex_exchange_identification: read: Connection reset by peer\r\n",
       "it closed the connection before the key exchange", true},
      {"ada@node3: Permission denied (publickey,password).\r\n", "it refused the login"},
      {"No RSA host key is known for node3 and you have requested strict checking.\r\nHost key verification "
       "failed.\r\n",
       "its host key is not known here"},
      {"@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification "
       "failed.\n",
       "its host key has changed"},
      {"/home/ada/.ssh/config: line 3: Bad configuration option: nonsense\n", "ssh does not accept its own"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.errors);
    const auto start_failure = failure(255, one.errors);
    CHECK_THAT(start_failure.message(), StartsWith(one.begins) && Contains(" (ssh: "));
    CHECK_THAT(start_failure.message(), !Contains("\n") && !Contains("\r"));
    CHECK(start_failure.is_worth_a_retry() == one.retry);
  }
}

TEST_CASE("a message of a login shell about ddlrun becomes one sentence that names the path") {
  for (const auto& [code, errors] : {std::pair{127, "bash: line 1: /opt/ddlrun: No such file or directory\n"},
                                     {127, "sh: 1: exec: /opt/ddlrun: not found\n"},
                                     {1, "/opt/ddlrun: Command not found.\n"},
                                     {127, ""}}) {
    CAPTURE(code, errors);
    CHECK_THAT(failure(code, errors).message(),
               StartsWith("ddlrun was not found at /opt/ddlrun; install it there"));
  }
  CHECK_THAT(failure(126, "bash: line 1: /opt/ddlrun: Permission denied\n").message(),
             StartsWith("ddlrun at /opt/ddlrun cannot be executed"));
  for (const auto& [code, errors] :
       {std::pair{126, "bash: line 1: /opt/ddlrun: cannot execute binary file: Exec format error\n"},
        {126, "sh: 1: exec: /opt/ddlrun: Exec format error\n"},
        {1, "/opt/ddlrun: Exec format error. Binary file not executable.\n"}}) {
    CAPTURE(errors);
    CHECK_THAT(failure(code, errors).message(),
               StartsWith("ddlrun at /opt/ddlrun was built for another kind of machine"));
  }
}

TEST_CASE("a shared library that is missing on the host is not reported as a missing ddlrun") {
  for (const auto& [code, errors] :
       {std::pair{
            127,
            "/opt/ddlrun: error while loading shared libraries: libpmix.so.2: cannot open shared object "
            "file: No such file or directory\n"},
        {1,
         "/opt/ddlrun: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by "
         "/opt/ddlrun)\n"},
        {127,
         "Error loading shared library libpmix.so.2: No such file or directory (needed by /opt/ddlrun)\n"}}) {
    CAPTURE(errors);
    const std::string sentence = failure(code, errors).message();
    CHECK_THAT(sentence, StartsWith("ddlrun at /opt/ddlrun cannot run there") && Contains("shared library") &&
                             !Contains("was not found at"));
    CHECK_THAT(sentence, Contains("libpmix.so.2") || Contains("GLIBC_2.38"));
  }
}

TEST_CASE("what a start-up file of the login shell writes is not taken for a message about ddlrun") {
  const std::string noise = "cat: /etc/motd.site: No such file or directory\nmodule: command not found\n";
  CHECK_THAT(failure(126, noise + "bash: line 1: /opt/ddlrun: Permission denied\n").message(),
             StartsWith("ddlrun at /opt/ddlrun cannot be executed") && !Contains("motd"));
  CHECK_THAT(failure(1, noise + "/opt/ddlrun: Permission denied.\n").message(),
             StartsWith("ddlrun at /opt/ddlrun cannot be executed"));
  CHECK_THAT(failure(127, "x: Permission denied\n/opt/ddlrun: Command not found.\n").message(),
             StartsWith("ddlrun was not found at /opt/ddlrun"));
  CHECK_THAT(
      failure(127, "error while loading shared libraries: liba.so\n/opt/ddlrun: not found\n").message(),
      StartsWith("ddlrun was not found at /opt/ddlrun"));
}

TEST_CASE("a login shell that ends in its start-up file is reported as that, with what it wrote") {
  // As .bashrc ends it by exit, and by set -e at its first failure.
  for (const auto& [code, errors] : {std::pair{0, ""},
                                     {1, "curl: (7) Connection refused\n"},
                                     {127, "bash: line 3: module: command not found\n"},
                                     {126, "bash: /etc/site.sh: Permission denied\n"}}) {
    CAPTURE(code, errors);
    CHECK_THAT(failure(code, errors, "Welcome\n").message(),
               StartsWith("ssh ended with " + std::to_string(code) +
                          " before ddlrun had answered, because the login shell there ended first: look") &&
                   Contains("~/.bashrc") && Contains("(it wrote: Welcome"));
  }
}

TEST_CASE("an agent that says why it ended was started by its login shell") {
  const std::string sentence = failure(1, "ddlrun agent on b: too few descriptors\n").message();
  CHECK(sentence ==
        "ssh ended with 1 before ddlrun had answered (it wrote: ddlrun agent on b: too few descriptors)");
}

TEST_CASE("unknown messages are quoted") {
  CHECK_THAT(failure(3, "", "This account is not available.\n").message(),
             StartsWith("ssh ended with 3 before ddlrun had answered") &&
                 EndsWith("(it wrote: This account is not available.)"));
  CHECK(failure(255, "Something new\n").message() ==
        "ssh ended with 255 before ddlrun had answered (it wrote: Something new)");
  CHECK(describe_ssh_failure({"docker", "/opt/ddlrun", 9, "", ""}).message() ==
        "docker was killed by SIGKILL before ddlrun had answered");
}

TEST_CASE("only the last informative lines are quoted, without control characters") {
  CHECK(last_error_lines(
            "Warning: Permanently added 'node3' (ED25519) to the list of known hosts.\r\n\none\ntwo\nthree\n"
            "\x1b[31mfour\n") == "two / three / four");
  CHECK(last_error_lines("a\x07 b\xc2\x9b"
                         "31m \xff") == "a^G b<U+009B>31m \\xFF");
  CHECK(last_error_lines("\n  \n") == "");
}

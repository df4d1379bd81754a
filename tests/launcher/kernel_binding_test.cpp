#include "launcher/process/process_state.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "support/catch.h"

using namespace ddl::launcher;
using namespace std::string_literals;

TEST_CASE("what a process waits in is known as far as the kernel tells it") {
  const auto text = [](const char* syscall, const char* wchan) {
    const KernelWait wait = parse_kernel_wait(syscall, wchan);
    return wait.system_call + "|" + wait.channel;
  };
  CHECK(text((std::to_string(SYS_futex) + " 0x7f00 0x0\n").c_str(), "futex_wait_queue") ==
        "futex|futex_wait_queue");
  CHECK(text("9999 0x0\n", "0") == "9999|");
  CHECK(text("-1 0x7ffe 0x7f00\n", "do_page_fault\n") == "|do_page_fault");
  CHECK(text("running\n", "0") == "|");
  CHECK(text("", "") == "|");
}

TEST_CASE("the allowed CPUs are read from a process's status") {
  CHECK(parse_allowed_cpus("Name:\tsh\nCpus_allowed:\t3\nCpus_allowed_list:\t0-3,64-67\nMems_allowed:\t1\n")
            .list() == "0-3,64-67");
  CHECK(parse_allowed_cpus("").is_empty());
  CHECK(parse_allowed_cpus("Cpus_allowed_list:\tnonsense\n").is_empty());
}

TEST_CASE("the memory policy is the second field of numa_maps, which may have a space in it") {
  CHECK(parse_memory_policy("55d1c1a2d000 default file=/usr/bin/true mapped=1\n7f00 bind:1\n") == "default");
  CHECK(parse_memory_policy("55d1c1a2d000 prefer (many):0-1 anon=1 dirty=1\n") == "prefer (many):0-1");
  CHECK(parse_memory_policy("55d1c1a2d000 bind:3 stack\n") == "bind:3");
  CHECK(parse_memory_policy("").empty());
  CHECK(parse_memory_policy("55d1c1a2d000").empty());
}

TEST_CASE("the visible devices are read from the environment") {
  CHECK(parse_visible_devices("A=1\0ROCR_VISIBLE_DEVICES=3\0B=2\0"s) == "ROCR_VISIBLE_DEVICES=3");
  CHECK(parse_visible_devices("CUDA_VISIBLE_DEVICES=GPU-1\0"s) == "CUDA_VISIBLE_DEVICES=GPU-1");
  CHECK(parse_visible_devices("MY_CUDA_VISIBLE_DEVICES=1\0"s).empty());
}

TEST_CASE("the binding of this process is read; that of a process that does not exist is empty") {
  CHECK_FALSE(read_kernel_binding(::getpid()).cpus.is_empty());
  CHECK(read_kernel_binding(0).cpus.is_empty());
}

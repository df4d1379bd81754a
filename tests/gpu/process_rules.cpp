// Rules of a vendor's runtime for two processes that use one GPU: the first one answers, the second one assists.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "gpu/driver.h"

namespace ddl::gpu_rules {
namespace {

/// An allocation of the other process, until the end of the scope.
class Opened {
 public:
  explicit Opened(const IpcHandle& handle) {
    check(driver().open_memory(&address_, handle), "the memory of another process");
  }
  ~Opened() { (void)driver().close_memory(address_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

constexpr unsigned kShared = kWithoutTimes | kForProcesses;

// Memory.

std::string bytes_of_another_process(Other* other) {
  const Stream stream;
  // Small: the driver puts several of them into one block.
  const Memory before(100), memory(kBytes);
  write(memory.address(), std::vector<int>(kInts, 5), stream.get());
  other->send(memory.handle());
  other->wait_done();
  expect(read(memory.address(), kInts, stream.get()) == std::vector<int>(kInts, 6),
         "its writes are not seen here");
  return "";
}
void add_one(Other& other) {
  const Stream stream;
  const Opened opened(other.receive<IpcHandle>());
  std::vector<int> values = read(opened.address(), kInts, stream.get());
  for (int& value : values) ++value;
  write(opened.address(), values, stream.get());
  other.say_done();
}

std::string own_memory(Other*) {
  const Memory memory(kBytes);
  void* opened = nullptr;
  const Code result = driver().open_memory(&opened, memory.handle());
  expect(result != kSuccess, "it is opened");
  return driver().text_of(result);
}

std::string own_event(Other*) {
  const Event event(kShared);
  void* opened = nullptr;
  const Code result = driver().open_event(&opened, event.handle());
  expect(result != kSuccess, "it is opened");
  return driver().text_of(result);
}

std::string memory_in_place_of_freed_memory(Other* other) {
  const Stream stream;
  const Opened before(other->receive<IpcHandle>());
  expect(read(before.address(), kInts, stream.get()).front() == 7, "another value before");
  other->say_done();
  // The first one stays open, as it does in libddl until there is need.
  const Opened after(other->receive<IpcHandle>());
  const bool sees_it = read(after.address(), kInts, stream.get()) == std::vector<int>(kInts, 9);
  other->say_done();
  expect(sees_it, "it has other values");
  return "";
}
void allocate_in_place_of_it(Other& other) {
  const Stream stream;
  Memory memory(kBytes);
  write(memory.address(), std::vector<int>(kInts, 7), stream.get());
  other.send(memory.handle());
  other.wait_done();
  memory.free();
  const Memory next(kBytes);
  write(next.address(), std::vector<int>(kInts, 9), stream.get());
  other.send(next.handle());
  other.wait_done();
}

// Events.

std::string a_wait_for_another_process(Other* other) {
  const Stream stream;
  const Event event(other->receive<IpcHandle>());
  event.hold(stream.get());
  const bool waits = !is_idle(stream.get());
  other->say_done();
  synchronize(stream.get());
  expect(waits, "the stream did not wait");
  return "";
}
void record_while_held(Other& other) {
  const Stream stream;
  Event event(kShared);
  Gate gate(stream.get());
  event.record(stream.get());
  other.send(event.handle());
  other.wait_done();
  gate.open();
  synchronize(stream.get());
  other.wait_end();
}

std::string a_later_record_elsewhere(Other* other) {
  const Stream stream;
  const Event event(other->receive<IpcHandle>());
  event.hold(stream.get());
  other->say_done();
  other->wait_done();
  synchronize(stream.get());
  return "";
}
void record_again(Other& other) {
  const Stream stream;
  Event event(kShared);
  event.record(stream.get());
  synchronize(stream.get());
  other.send(event.handle());
  other.wait_done();
  Gate gate(stream.get());
  event.record(stream.get());
  other.say_done();
  other.wait_end();
}

// Death.

std::string death_with_an_event(Other* other) {
  const Stream stream;
  const Event event(other->receive<IpcHandle>());
  event.hold(stream.get());
  expect(!is_idle(stream.get()), "the stream did not wait");
  other->say_done();
  other->wait_end();
  const auto begin = std::chrono::steady_clock::now();
  synchronize(stream.get());
  return seconds_since(begin);
}
void die_while_held(Other& other) {
  const Stream stream;
  Event event(kShared);
  Gate gate(stream.get());
  event.record(stream.get());
  other.send(event.handle());
  other.wait_done();
  (void)::kill(::getpid(), SIGKILL);
}

std::string death_with_memory(Other* other) {
  const Stream stream;
  const Opened opened(other->receive<IpcHandle>());
  other->say_done();
  other->wait_end();
  expect(read(opened.address(), kInts, stream.get()) == std::vector<int>(kInts, 7),
         "other values afterwards");
  return "";
}
void die_with_memory(Other& other) {
  const Stream stream;
  const Memory memory(kBytes);
  write(memory.address(), std::vector<int>(kInts, 7), stream.get());
  other.send(memory.handle());
  other.wait_done();
  (void)::kill(::getpid(), SIGKILL);
}

}  // namespace

std::vector<Rule> process_rules() {
  return {
      {"Memory that another process opens is the same memory, also if it is small.", bytes_of_another_process,
       add_one},
      {"A process cannot open its own memory.", own_memory},
      {"A process cannot open its own event.", own_event},
      {"Memory that is freed while another process has it open does no harm to what is opened after it.",
       memory_in_place_of_freed_memory, allocate_in_place_of_it},
      {"A stream waits for what another process has recorded.", a_wait_for_another_process,
       record_while_held},
      {"It does not wait for what the other process records later.", a_later_record_elsewhere, record_again},
      {"When a process dies whose event is not done, streams of others that wait for it go on.",
       death_with_an_event, die_while_held},
      {"Opened memory keeps its bytes when its owner has died.", death_with_memory, die_with_memory},
  };
}

}  // namespace ddl::gpu_rules

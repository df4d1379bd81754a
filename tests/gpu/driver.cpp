#include "gpu/driver.h"

namespace ddl::gpu_rules {

const Driver& driver() { return is_hip() ? hip_driver() : cuda_driver(); }

void check(Code result, const char* what) { expect_result(result, kSuccess, what); }

void expect_result(Code result, Code wanted, const char* what) {
  expect(result == wanted, std::string(what) + ": " + driver().text_of(result));
}

IpcHandle Memory::handle() const {
  IpcHandle handle{};
  check(driver().share_memory(handle, address_), "the handle of memory");
  return handle;
}

void synchronize(void* stream) { check(driver().synchronize(stream), "the wait for a stream"); }

bool Event::is_done() const {
  const Code result = driver().query(handle_);
  if (result == kNotReady) return false;
  check(result, "the question for an event");
  return true;
}

IpcHandle Event::handle() const {
  IpcHandle handle{};
  check(driver().share_event(handle, handle_), "the handle of an event");
  return handle;
}

bool is_idle(void* stream) {
  Event event;
  event.record(stream);
  return event.is_done();
}

Gate::Gate(void* stream) : stream_(stream) {
  check(driver().call(
            stream, [](void* self) { static_cast<Gate*>(self)->pass(); }, this),
        "a function of the host on a stream");
}

Gate::~Gate() {
  open();
  // The function uses this object.
  (void)driver().synchronize(stream_);
}

void Gate::open() {
  {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
  }
  changed_.notify_all();
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_open_; });
}

void write(void* to, const std::vector<int>& values, void* stream) {
  check(driver().copy(to, values.data(), values.size() * sizeof(int), stream), "a copy to the GPU");
  synchronize(stream);
}

std::vector<int> read(const void* from, std::size_t count, void* stream) {
  std::vector<int> values(count);
  check(driver().copy(values.data(), from, count * sizeof(int), stream), "a copy from the GPU");
  synchronize(stream);
  return values;
}

Known known(const void* address) {
  Known found;
  check(driver().find(found, address), "the question for an address");
  expect(found.is_on_gpu, "the address is not said to be on a GPU");
  return found;
}

}  // namespace ddl::gpu_rules

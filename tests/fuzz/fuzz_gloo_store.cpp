// The rendezvous store with arbitrary requests, one a line: METHOD PATH BODY. Every answer is one that the protocol
// has, a value is unchanged when it is read back, and the limits hold.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "launcher/gloo/gloo_store.h"

namespace {

using namespace ddl::launcher;

constexpr GlooLimits kSmall{16, 12, 160};

/// Up to the next blank, which is consumed.
std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size() == line.size() ? word.size() : word.size() + 1);
  return word;
}

void check_sentence(const GlooAnswer& answer) {
  require(!answer.body.empty() && answer.body.size() < 2000);
  for (const char c : answer.body) require(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f');
}

void check_request(GlooStore& store, std::string_view line) {
  const std::string_view method = next_word(line), path = next_word(line);
  const auto request = read_gloo_request(method, path, std::string(line));
  if (!request) {
    require(request.error().status == 400 || request.error().status == 501);
    return check_sentence(request.error());
  }
  require("/" + request->scope + "/" + request->key == path);
  const std::size_t keys = store.keys();
  const GlooAnswer answer = store.apply(*request);
  require(store.keys() <= kSmall.keys && store.bytes() <= kSmall.bytes);
  GlooRequest reading = *request;
  reading.method = GlooMethod::kGet;
  const GlooAnswer read = store.apply(reading);
  require(read.status == 200 || read.status == 404);
  switch (request->method) {
    case GlooMethod::kGet: require(answer == read && store.keys() == keys); break;
    case GlooMethod::kDelete:
      require(answer.status == 200 && answer.body.empty() && store.keys() <= keys);
      break;
    case GlooMethod::kPut:
      if (answer.status == 200) {
        require(read.status == 200 && read.body == request->body);
      } else {
        require(answer.status == 400 || answer.status == 413 || answer.status == 507);
        require(store.keys() == keys);
        check_sentence(answer);
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  GlooStore store({2, {{"a", 2}}, {1, 1}}, kSmall);
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    check_request(store, line);
  }
  return 0;
}

#include "runtime/src/message/message.h"

namespace ddl::runtime {

std::string describe_size(std::uint64_t bytes, ddl_dtype dtype) {
  const std::size_t size = element_size(dtype);
  std::string text = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (size == 0) return text;
  const std::uint64_t count = bytes / size;
  return text + " (" + dtype_name(dtype) + ", " + std::to_string(count) +
         (count == 1 ? " element)" : " elements)");
}

std::string Message::describe() const {
  return std::string(sends ? "a message that is sent" : "a message that is received") + " (" +
         dtype_name(dtype) + ", " + std::to_string(count) + (count == 1 ? " element" : " elements") +
         (tag == DDL_ANY_TAG ? ", any tag)" : ", tag " + std::to_string(tag) + ")");
}

std::string describe_mismatch(const std::string& sender, const std::string& sent, const std::string& receiver,
                              const std::string& expected, int tag) {
  return sender + " sent a message of " + sent + " with tag " + std::to_string(tag) + ", for which " +
         receiver + " expected " + expected;
}

std::string describe_dropped(const std::string& receiver, const Message& message) {
  return receiver + " has freed the process set, and had posted no receive for " + message.describe();
}

}  // namespace ddl::runtime

// What a handle of ddl.h stands for.
#pragma once

#include <memory>

#include "runtime/src/message/message_engine.h"
#include "runtime/src/named/engine.h"

/// Owned by the program until ddl_wait(). A named tensor, or a message.
struct ddl_handle {
  std::shared_ptr<ddl::runtime::Engine> engine;
  ddl::runtime::SubmissionPtr submission;
  std::shared_ptr<ddl::runtime::MessageEngine> messages;  ///< null: a named tensor
  ddl::runtime::MessagePtr message;

  ddl::runtime::Outcome wait() const {
    return messages ? messages->wait(*message) : engine->wait(*submission);
  }
  tl::expected<bool, ddl::runtime::Failure> test() const {
    return messages ? messages->test(*message) : engine->test(*submission);
  }
};

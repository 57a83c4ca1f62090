//===- Messages.h - Messages between ranks as bytes -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_RANKS_MESSAGES_H
#define LLAMAC_RUNTIME_RANKS_MESSAGES_H

#include "runtime/ranks/RankWorld.h"
#include "runtime/ranks/messages_generated.h"

namespace llamac {

/// `object`, of a table of messages.fbs, as bytes.
template <typename Object>
flatbuffers::DetachedBuffer packMessage(const Object &object) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Object::TableType::Pack(builder, &object));
  return builder.Release();
}

/// The object that `rank` of `world` has sent as `bytes`. Ends the process
/// where they are none.
template <typename Object>
Object unpackMessage(const RankWorld &world, absl::Span<const uint8_t> bytes,
                     int rank) {
  using Table = typename Object::TableType;
  if (!flatbuffers::Verifier(bytes.data(), bytes.size())
           .template VerifyBuffer<Table>())
    world.endBecauseOf(rank);
  Object object;
  flatbuffers::GetRoot<Table>(bytes.data())->UnPackTo(&object);
  return object;
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_RANKS_MESSAGES_H

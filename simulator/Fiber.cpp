//===- Fiber.cpp - Threads of execution that switch by hand ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace llamac::sim {

extern "C" void llamacSimSwitch(void **from, void *to);

#if defined(__x86_64__)

// Six registers survive a call besides the stack pointer; the return address
// says where to go on.
asm(".text\n"
    ".globl llamacSimSwitch\n"
    ".hidden llamacSimSwitch\n"
    ".type llamacSimSwitch, @function\n"
    "llamacSimSwitch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  retq\n"
    ".size llamacSimSwitch, . - llamacSimSwitch\n");

static void *firstFrame(std::byte *top, void (*entry)()) {
  // Six registers, the address to return to, and a word that leaves the stack
  // as a call would have.
  auto *frame = reinterpret_cast<void **>(top) - 8;
  std::memset(static_cast<void *>(frame), 0, 8 * sizeof(void *));
  frame[6] = reinterpret_cast<void *>(entry);
  return static_cast<void *>(frame);
}

#elif defined(__aarch64__)

// x19 to x30 and the low halves of v8 to v15 survive a call.
asm(".text\n"
    ".globl llamacSimSwitch\n"
    ".hidden llamacSimSwitch\n"
    ".type llamacSimSwitch, %function\n"
    "llamacSimSwitch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n"
    "  stp x21, x22, [sp, #16]\n"
    "  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n"
    "  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n"
    "  ldp x21, x22, [sp, #16]\n"
    "  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n"
    "  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n"
    ".size llamacSimSwitch, . - llamacSimSwitch\n");

static void *firstFrame(std::byte *top, void (*entry)()) {
  auto *frame = reinterpret_cast<void **>(top) - 20;
  std::memset(static_cast<void *>(frame), 0, 20 * sizeof(void *));
  frame[11] = reinterpret_cast<void *>(entry);
  return static_cast<void *>(frame);
}

#else
#error "the simulator runs on x86-64 and AArch64"
#endif

void Fiber::start(std::byte *stack, size_t size, void (*entry)()) {
  stackPointer = firstFrame(stack + size, entry);
}

void Fiber::switchTo(Fiber &to) {
  llamacSimSwitch(&stackPointer, to.stackPointer);
}

static size_t guardBytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::shared_ptr<StackPool> StackPool::shared() {
  static std::mutex mutex;
  static std::weak_ptr<StackPool> known;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<StackPool> pool = known.lock();
  if (!pool)
    known = pool = std::make_shared<StackPool>();
  return pool;
}

std::byte *StackPool::take() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!unused.empty()) {
      std::byte *stack = unused.back();
      unused.pop_back();
      return stack;
    }
  }
  const size_t guard = guardBytes();
  void *memory = mmap(nullptr, guard + stackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  mprotect(memory, guard, PROT_NONE);
  return static_cast<std::byte *>(memory) + guard;
}

void StackPool::giveBack(std::byte *stack) {
  std::lock_guard<std::mutex> lock(mutex);
  unused.push_back(stack);
}

StackPool::~StackPool() {
  const size_t guard = guardBytes();
  for (std::byte *stack : unused)
    munmap(stack - guard, guard + stackBytes);
}

} // namespace llamac::sim

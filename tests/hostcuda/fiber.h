/* fiber.h: fibers: stacks of their own between which one thread of the process changes by a call. Part of emulate.cc.
 *
 * Source of the switch: the callee-saved registers of the System V ABI for x86-64 go to the old stack, those of the new
 * one come from there; kernels do not change the modes of the floating-point units, so these stay. Elsewhere ucontext,
 * which is slower by a system call. AddressSanitizer is told of every change. */
#ifndef ST_TESTS_HOSTCUDA_FIBER_H
#define ST_TESTS_HOSTCUDA_FIBER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#define HOSTCUDA_UCONTEXT
#endif
#ifdef HOSTCUDA_UCONTEXT
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "tests/hostcuda/hostcuda.h"

struct fiber {
    fiber *next_free;
#ifdef HOSTCUDA_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
    const void *bottom; /* of the stack: its lowest address, */
    size_t bytes;       /* ... and how large it is */
    void *fake_stack;   /* AddressSanitizer's */
};

static fiber *fiber_before; /* from which the last change came */

#ifndef HOSTCUDA_UCONTEXT
/* Leaves the stack pointer in *from and goes on from `to`. */
extern "C" void hostcuda_switch(void **from, void *to);
__asm__(".text\n"
        ".globl hostcuda_switch\n"
        ".hidden hostcuda_switch\n"
        ".type hostcuda_switch, @function\n"
        "hostcuda_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size hostcuda_switch, .-hostcuda_switch\n");
#endif

/* What a fiber must do first when it gets the turn. */
static inline void fiber_arrived([[maybe_unused]] fiber *self) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(self->fake_stack, &fiber_before->bottom, &fiber_before->bytes);
#endif
}

/* Gives the turn to `to`; returns when somebody gives it back to `self`. */
static inline void fiber_change(fiber *self, fiber *to) {
    fiber_before = self;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&self->fake_stack, to->bottom, to->bytes);
#endif
#ifdef HOSTCUDA_UCONTEXT
    swapcontext(&self->context, &to->context);
#else
    hostcuda_switch(&self->stack_pointer, to->stack_pointer);
#endif
    fiber_arrived(self);
}

/* It gets the turn soon: what lies on top of its stack is asked for. */
static inline void fiber_expect([[maybe_unused]] const fiber *soon) {
#ifndef HOSTCUDA_UCONTEXT
    const char *top = static_cast<const char *>(soon->stack_pointer);
    __builtin_prefetch(top);
    __builtin_prefetch(top + 64);
    __builtin_prefetch(top + 128);
#endif
}

/* A fiber that will call enter(), which must not return. Its stack ends below in a page that nobody can touch. Stacks
 * that lay at equal distances would share the same few sets of the caches: each begins somewhat lower than the one
 * before. */
static inline fiber *fiber_new(size_t bytes, void (*enter)(void)) {
    enum { GUARD = 65536, LINE = 64, SPREAD = 128 };
    static unsigned count;
    const size_t lower = count++ * 5 % SPREAD * LINE; /* 5: neighbours do not share lines, either */
    char *map = static_cast<char *>(
        mmap(nullptr, GUARD + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (map == MAP_FAILED || mprotect(map + GUARD, bytes, PROT_READ | PROT_WRITE))
        hostcuda_complain("no memory for the stack of a thread");
    fiber *f = new fiber();
    f->bottom = map + GUARD;
    f->bytes = bytes;
#ifdef HOSTCUDA_UCONTEXT
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = map + GUARD;
    f->context.uc_stack.ss_size = bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, enter, 0);
#else
    /* From the top: no return address for enter(), enter, and six registers for the first switch to take. */
    uint64_t *top = reinterpret_cast<uint64_t *>(map + GUARD + bytes - lower);
    top[-2] = reinterpret_cast<uint64_t>(enter);
    f->stack_pointer = top - 8;
#endif
    return f;
}

#endif

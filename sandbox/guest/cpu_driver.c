// The child of the profiler: it loads a candidate and calls it when told to. It runs inside the sandbox, in the
// candidate's own address space, so nothing that it says is evidence: clock, inputs, reference and verdict are
// the parent's. After `dlopen` the candidate may have rewritten every line of this.
//
//   cpu_driver IN OUT GO DONE LIBRARY SYMBOL      four descriptors, a path, a name
//
// IN is the arena of inputs (opened read-only), OUT the arena of outputs and scratch. One message on GO (struct
// go) is one call; one byte on DONE says "ready" or "returned". Exit codes: see enum. SLOTS, PARAMETERS and
// ARGUMENTS come from the problem's prototype (spak.validators.problems.prototype): a slot holds a scalar's value
// or a pointer's offset in its arena.
//
// THREADS, where it is defined, is how many threads a candidate may use: those of OpenMP's library, started here
// before anything of the candidate is loaded. The filters hold for each of them and let none be made.

#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXIT_LOAD = 81, EXIT_SYMBOL = 82, EXIT_WROTE_INPUTS = 83, EXIT_SETUP = 84, EXIT_OUTSIDE = 87 };

typedef int64_t __attribute__((may_alias)) slot;
struct go { slot slot[SLOTS], shift; };
typedef void kernel(PARAMETERS);

#define SHIFTS 4096
#define GUARD (1 << 20) // bytes before and behind an arena that nobody may touch

static char *in, *out;
static size_t in_size, out_size;

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the filters know x86-64 and aarch64"
#endif

// A filter is a list of system calls; whatever is not on it ends the process. x32 numbers are not on it.
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define HEAD LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr)
#define RUNNING ALLOW(__NR_read), ALLOW(__NR_write), ALLOW(__NR_mmap), ALLOW(__NR_munmap), ALLOW(__NR_brk), \
    ALLOW(__NR_madvise), ALLOW(__NR_exit_group), ALLOW(__NR_rt_sigreturn)
#ifdef THREADS
#define WAITING ALLOW(__NR_futex),
#define FOR_ALL SECCOMP_FILTER_FLAG_TSYNC
#else
#define WAITING
#define FOR_ALL 0
#endif
#define LOADING ALLOW(__NR_mprotect), ALLOW(__NR_close), ALLOW(__NR_fstat), ALLOW(__NR_newfstatat), \
    ALLOW(__NR_lseek), ALLOW(__NR_pread64), ALLOW(__NR_getrandom), ALLOW(__NR_seccomp)
// openat for reading only: flags that write, create or truncate are as forbidden as an unlisted call.
#define OPEN_TO_READ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 4), LOAD(args[2]), \
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 3 | 0100 | 01000, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS), \
    RETURN(SECCOMP_RET_ALLOW)
#define INSTALL(list) install(list, sizeof list / sizeof *list)

static struct sock_filter filter_a[] = {HEAD, WAITING RUNNING, LOADING, OPEN_TO_READ, RETURN(SECCOMP_RET_KILL_PROCESS)};
static struct sock_filter filter_b[] = {HEAD, WAITING RUNNING, RETURN(SECCOMP_RET_KILL_PROCESS)};

static void install(struct sock_filter *list, unsigned short length) {
    struct sock_fprog program = {length, list};
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, FOR_ALL, &program) != 0)
        _exit(EXIT_SETUP);
}

static char *map(int fd, int protection, size_t *size) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        _exit(EXIT_SETUP);
    *size = (size_t)info.st_size;
    char *around = mmap(NULL, *size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (around == MAP_FAILED)
        _exit(EXIT_SETUP);
    char *at = mmap(around + GUARD, *size, protection, MAP_SHARED | MAP_POPULATE | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED)
        _exit(EXIT_SETUP);
    close(fd);
    return at;
}

static int within(const char *at, const char *arena, size_t size, size_t guard) {
    return at >= arena - guard && at < arena + size + guard;
}

// Only a diagnosis: a write to the inputs and any other bad access end the evaluation alike.
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    char *at = info->si_addr;
    if (within(at, in, in_size, 0))
        _exit(EXIT_WROTE_INPUTS);
    _exit(within(at, in, in_size, GUARD) || within(at, out, out_size, GUARD) ? EXIT_OUTSIDE : 128 + signal);
}

static void catch_faults(void) {
    static char stack[32768];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaltstack(&other, NULL) || sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL))
        _exit(EXIT_SETUP);
}

// The threads wait in OpenMP's library from here on; they have what the first one was forbidden so far.
static void start_threads(void) {
#ifdef THREADS
#pragma omp parallel num_threads(THREADS)
    __asm__ volatile("" : : : "memory");
#endif
}

// What the next call finds on its stack: bytes of 0xff, which are NaN as floats. `malloc` gives 0xfe.
static __attribute__((noinline)) void poison_stack(void) {
    char stack[65536 + SHIFTS];
    memset(stack, 0xff, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory");
}

// The call, its frame moved by `shift` bytes: where the stack lies modulo a cache line is drawn once for each
// process, and some kernels take a third longer on the wrong place (seen: 3.0 and 4.0 ms, process by process).
// It comes from one of two places, so that a kernel which knows its caller's address meets another one; the texts
// in the lines of assembler keep the compiler from joining them.
static __attribute__((noinline)) void run(kernel *call, const struct go *go) {
    char *pad = alloca((size_t)go->shift + 16);
    __asm__ volatile("" : : "r"(pad) : "memory");
    if (go->shift & 16) {
        call(ARGUMENTS);
        __asm__ volatile("# from here" : : : "memory");
    } else {
        call(ARGUMENTS);
        __asm__ volatile("# or from there" : : : "memory");
    }
}

int main(int argc, char **argv) {
    if (argc != 7)
        return EXIT_SETUP;
    in = map(atoi(argv[1]), PROT_READ, &in_size);
    out = map(atoi(argv[2]), PROT_READ | PROT_WRITE, &out_size);
    int go_fd = atoi(argv[3]), done_fd = atoi(argv[4]);
    mallopt(M_PERTURB, 1);
    catch_faults();
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return EXIT_SETUP;
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV); // where it can be: no kernel needs the time
    start_threads();
    INSTALL(filter_a);
    void *library = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        char *why = dlerror();
        if (write(2, why, strlen(why)) < 0)
            _exit(EXIT_LOAD);
        _exit(EXIT_LOAD);
    }
    kernel *call = (kernel *)dlsym(library, argv[6]);
    if (call == NULL)
        _exit(EXIT_SYMBOL);
    INSTALL(filter_b);
    struct go go;
    if (write(done_fd, "R", 1) != 1)
        _exit(EXIT_SETUP);
    while (read(go_fd, &go, sizeof go) == sizeof go) {
        poison_stack();
        run(call, &go);
        if (write(done_fd, "D", 1) != 1)
            break;
    }
    _exit(0);
}

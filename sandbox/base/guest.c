/* The guest of a container: its first process, and what runs one job in it.
 *
 *     guest hold   waits until nobody holds its standard input any more; with it the container ends
 *     guest step   reads one job from standard input, runs it to its end, says on standard error how it ended
 *
 * What `step` reads (little-endian, from spak.sandbox.docker_wire):
 *     total u32, nonce 32 bytes, wall_ms u32, cpu_s u32, processes u32, open_files u32, file_bytes u64,
 *     then five lists of counted byte strings, each list with its count in front:
 *     system call filters, arguments, environment, folders to empty afterwards, the working folder (one).
 * The rest of standard input is the job's. What `step` writes last, when nothing of the job lives any more, are
 * 64 bytes on standard error: nonce, kind, number, milliseconds of CPU time, 1 when something was left behind.
 *     x N  exited with N         s N  ended by signal N      t    the wall time was over
 *     c    the CPU time was over  e N  could not be started, errno N
 *
 * Neither can be read or traced by the job, which has the same user: they are not dumpable. The job can kill
 * `step`; then nothing is said, and the container is thrown away.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NONCE = 32, TRAILER = 64, MOST = 64 << 20, LOOK_MS = 100, END_MS = 10000, FAILED = 125 };

static unsigned char *at, *end;

static void refuse(const char *why) {
    fprintf(stderr, "guest: %s\n", why);
    exit(FAILED);
}

static void fill(void *to, size_t size) {
    unsigned char *next = to;
    while (size > 0) {
        ssize_t got = read(0, next, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) refuse("the job is cut off");
        next += got, size -= (size_t)got;
    }
}

static const void *take(size_t size) {
    if ((size_t)(end - at) < size) refuse("the job is malformed");
    at += size;
    return at - size;
}

static uint32_t number(void) {
    uint32_t value;
    memcpy(&value, take(4), 4);
    return value;
}

struct item { uint32_t size; char *text; };
struct list { uint32_t count; struct item *items; };

static struct list read_list(void) {
    struct list found = {number(), NULL};
    if (found.count > MOST / 4) refuse("the job is malformed");
    found.items = calloc(found.count + 1, sizeof *found.items);
    for (uint32_t i = 0; i < found.count; i++) {
        found.items[i].size = number();
        const char *text = take(found.items[i].size);
        found.items[i].text = malloc((size_t)found.items[i].size + 1);
        memcpy(found.items[i].text, text, found.items[i].size);
        found.items[i].text[found.items[i].size] = 0;
    }
    return found;
}

static char **words(const struct list *from) {
    char **found = calloc(from->count + 1, sizeof *found);
    for (uint32_t i = 0; i < from->count; i++) found[i] = from->items[i].text;
    return found;
}

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

static long reaped_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000L +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000L;
}

/* CPU time of everything that lives here: the container runs one job at a time. */
static long living_ms(void) {
    long ticks = 0;
    DIR *folder = opendir("/proc");
    if (!folder) return 0;
    for (struct dirent *one; (one = readdir(folder));) {
        char path[300], text[1024];
        if (one->d_name[0] < '1' || one->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%s/stat", one->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        ssize_t got = read(file, text, sizeof text - 1);
        close(file);
        if (got <= 0) continue;
        text[got] = 0;
        unsigned long user, kernel;
        const char *after = strrchr(text, ')');
        if (after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) == 2)
            ticks += (long)(user + kernel);
    }
    closedir(folder);
    return ticks * 1000L / sysconf(_SC_CLK_TCK);
}

static int hold(void) {
    char byte;
    signal(SIGCHLD, SIG_IGN); /* orphans are reaped by the kernel */
    for (;;) {
        ssize_t got = read(0, &byte, 1);
        if (got == 0 || (got < 0 && errno != EINTR)) return 0;
    }
}

static void limit(int kind, rlim_t soft, rlim_t hard) {
    struct rlimit old, wanted = {soft, hard};
    if (getrlimit(kind, &old) == 0 && old.rlim_max != RLIM_INFINITY) {
        if (wanted.rlim_max > old.rlim_max) wanted.rlim_max = old.rlim_max;
        if (wanted.rlim_cur > wanted.rlim_max) wanted.rlim_cur = wanted.rlim_max;
    }
    if (setrlimit(kind, &wanted) != 0) _exit(FAILED);
}

static int unlink_one(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    if (where->level > 0 && (type == FTW_DP ? rmdir(path) : unlink(path)) != 0) return 1;
    return 0;
}

static int unlock_one(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    if (where->level > 0 && (type == FTW_D || type == FTW_DNR)) chmod(path, 0700);
    return 0;
}

/* Queues, semaphores and shared memory of System V stay when their makers end. */
static int kernel_objects(void) {
    static const char *const files[] = {"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "r");
        int lines = 0;
        if (!file) continue;
        for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
        fclose(file);
        if (lines > 1) return 1;
    }
    return 0;
}

static int clean(const struct list *folders) {
    int left = kernel_objects();
    for (uint32_t i = 0; i < folders->count; i++) {
        const char *folder = folders->items[i].text;
        if (nftw(folder, unlink_one, 16, FTW_PHYS | FTW_DEPTH | FTW_MOUNT) == 0) continue;
        nftw(folder, unlock_one, 16, FTW_PHYS | FTW_MOUNT);
        left |= nftw(folder, unlink_one, 16, FTW_PHYS | FTW_DEPTH | FTW_MOUNT) != 0;
    }
    return left;
}

/* Everything but the container's first process and this one; 0 when something will not end. */
static int end_all(void) {
    for (long until = now_ms() + END_MS; now_ms() < until;) {
        int none = kill(-1, SIGKILL) != 0 && errno == ESRCH;
        while (waitpid(-1, NULL, WNOHANG) > 0);
        if (none) return 1;
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    return 0;
}

static int step(void) {
    uint32_t total;
    char nonce[NONCE + 1] = {0};
    fill(&total, 4);
    if (total > MOST) refuse("the job is too large");
    at = malloc(total);
    if (!at) refuse("no memory for the job");
    end = at + total;
    fill(at, total);
    memcpy(nonce, take(NONCE), NONCE);
    uint32_t wall_ms = number(), cpu_s = number(), processes = number(), open_files = number();
    uint64_t file_bytes;
    memcpy(&file_bytes, take(8), 8);
    struct list filters = read_list(), arguments = read_list(), variables = read_list(), folders = read_list();
    struct list place = read_list();
    char **argv = words(&arguments), **env = words(&variables);
    if (!argv[0]) refuse("the command is empty");
    if (place.count != 1) refuse("the job is malformed");

    int told[2];
    sigset_t child_ends, before;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    if (pipe2(told, O_CLOEXEC) != 0 || sigprocmask(SIG_BLOCK, &child_ends, &before) != 0)
        refuse(strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* an old gVisor has none; the container's first process reaps */
    long began = now_ms();
    pid_t job = fork();
    if (job < 0) refuse(strerror(errno));
    if (job == 0) {
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* this copy's own; the next line needs it */
        int mark = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (mark >= 0) {
            if (write(mark, "1000", 4) != 4) errno = 0;
            close(mark);
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
        setsid();
        umask(022);
        signal(SIGPIPE, SIG_DFL);
        environ = env; /* where execvpe finds PATH */
        limit(RLIMIT_CORE, 0, 0);
        limit(RLIMIT_CPU, cpu_s, cpu_s + 1);
        limit(RLIMIT_FSIZE, file_bytes, file_bytes);
        limit(RLIMIT_NOFILE, open_files, open_files);
        limit(RLIMIT_NPROC, processes, processes);
        int wrong = chdir(place.items[0].text) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : 0;
        for (uint32_t i = 0; i < filters.count && !wrong; i++) {
            struct sock_fprog program = {(unsigned short)(filters.items[i].size / sizeof(struct sock_filter)),
                                         (struct sock_filter *)filters.items[i].text};
            if (filters.items[i].size % sizeof(struct sock_filter) ||
                prctl(PR_SET_SECCOMP, 2, &program, 0, 0) != 0)
                wrong = errno ? errno : EINVAL;
        }
        int found[2] = {!wrong, wrong}; /* whether it was the program itself that could not be started */
        if (!wrong) {
            execvpe(argv[0], argv, env);
            found[1] = errno;
            dprintf(2, "%s: %s\n", argv[0], strerror(errno));
        }
        if (write(told[1], found, sizeof found) != sizeof found) _exit(FAILED);
        _exit(FAILED);
    }
    close(told[1]);
    close(0);

    char kind = 0;
    int code = 0, status = 0;
    while (!kind) {
        pid_t ended;
        while (!kind && (ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == job) {
                kind = WIFEXITED(status) ? 'x' : 's';
                code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
            }
        long rest = began + (long)wall_ms - now_ms();
        if (kind) break;
        if (rest <= 0) kind = 't';
        else if (reaped_ms() + living_ms() > 1000L * cpu_s) kind = 'c';
        else {
            if (rest > LOOK_MS) rest = LOOK_MS;
            struct timespec turn = {rest / 1000, rest % 1000 * 1000000L};
            sigtimedwait(&child_ends, NULL, &turn);
        }
    }
    int left = !end_all();
    int found[2];
    if (read(told[0], found, sizeof found) == sizeof found) {
        kind = 'e', code = found[1];
        if (found[0] && (code == ENOENT || code == ENOTDIR)) kind = 'x', code = 127;
        if (found[0] && (code == EACCES || code == ENOEXEC || code == EISDIR || code == EPERM)) kind = 'x', code = 126;
    }
    left |= clean(&folders);
    char text[TRAILER + 1];
    memset(text, ' ', sizeof text);
    int length = snprintf(text, sizeof text, "%s %c %d %ld %d", nonce, kind, code, reaped_ms(), left);
    if (length < TRAILER) text[length] = ' ';
    fcntl(2, F_SETFL, fcntl(2, F_GETFL) & ~O_NONBLOCK); /* the job may have changed it */
    for (size_t sent = 0; sent < TRAILER;) {
        ssize_t got = write(2, text + sent, TRAILER - sent);
        if (got < 0 && errno != EINTR) return FAILED;
        if (got > 0) sent += (size_t)got;
    }
    return 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) refuse(strerror(errno));
    if (argc == 2 && strcmp(argv[1], "hold") == 0) {
        if (environ && environ[0]) execve("/proc/self/exe", argv, (char *[]){NULL}); /* nothing to be read of it */
        return hold();
    }
    if (argc == 2 && strcmp(argv[1], "step") == 0) return step();
    refuse("say hold or step");
}

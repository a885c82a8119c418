/* A disk that fails when it is told to: loaded before the C library, it lets the n-th call of a kind fail on files of a folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, RENAME = 4, READ = 8, OPEN = 16 };

static int armed, error_number;
static long left, fired;
static char folder[4096];

void fault_arm(int kinds, long nth, int number, const char *where) {
    snprintf(folder, sizeof folder, "%s", where);
    error_number = number;
    __atomic_store_n(&fired, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&left, nth, __ATOMIC_SEQ_CST);
    __atomic_store_n(&armed, kinds, __ATOMIC_SEQ_CST);
}

long fault_fired(void) { return __atomic_load_n(&fired, __ATOMIC_SEQ_CST); }

static int fails(int kind, const char *path) {
    if (!(__atomic_load_n(&armed, __ATOMIC_SEQ_CST) & kind) || strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) != 0) return 0;
    __atomic_add_fetch(&fired, 1, __ATOMIC_SEQ_CST);
    errno = error_number;
    return 1;
}

static int fails_on(int kind, int fd) {
    char link[64], path[4096];
    if (!__atomic_load_n(&armed, __ATOMIC_SEQ_CST)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(kind, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) { return fails_on(WRITE, fd) ? -1 : NEXT(write)(fd, data, size); }
ssize_t read(int fd, void *data, size_t size) { return fails_on(READ, fd) ? -1 : NEXT(read)(fd, data, size); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { return fails_on(READ, fd) ? -1 : NEXT(pread)(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { return fails_on(READ, fd) ? -1 : NEXT(pread64)(fd, data, size, at); }
int fsync(int fd) { return fails_on(SYNC, fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails_on(SYNC, fd) ? -1 : NEXT(fdatasync)(fd); }
int rename(const char *from, const char *to) { return fails(RENAME, to) ? -1 : NEXT(rename)(from, to); }

static int opens(const char *name, const char *path, int flags, mode_t mode) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    return fails(OPEN, path) ? -1 : next(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return opens("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return opens("open64", path, flags, mode);
}

/* Runs a command several times and says what it took: one line a run, "WALL_US CPU_US
 * MAXRSS_KIB".
 *
 * A program of its own and not a few lines of Python, because a child's peak memory counts what
 * its parent had at the moment of fork: this parent is small. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long long us(struct timeval t)
{
	return t.tv_sec * 1000000LL + t.tv_usec;
}

static void be_child(char **argv)
{
	int null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(127);
	execv(argv[0], argv);
	_exit(127);
}

static int run_once(char **argv)
{
	int status;
	struct rusage usage;
	long long start = now_us();
	pid_t pid = fork();
	if (pid == 0)
		be_child(argv);
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 1;
	long long wall = now_us() - start;
	printf("%lld %lld %ld\n", wall, us(usage.ru_utime) + us(usage.ru_stime),
		usage.ru_maxrss);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[1]) : 0;
	if (times < 1) {
		fputs("usage: measure TIMES PROGRAM [ARGUMENTS]\n", stderr);
		return 2;
	}
	for (int i = 0; i < times; i++) {
		if (run_once(argv + 2) != 0) {
			fprintf(stderr, "measure: %s failed\n", argv[2]);
			return 1;
		}
		fflush(stdout);
	}
	return 0;
}

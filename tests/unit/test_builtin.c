/* Whom no rule may end. */
#include "test.h"

#include <unistd.h>

#include "policy/builtin.h"
#include "proc/proc.h"

/* A process that a rule may end. */
static struct builtin_facts ordinary(void)
{
	return (struct builtin_facts){ .pid = 4242,
		.uid = 1001,
		.uid_min = 1000,
		.comm = "python3",
		.program = PROGRAM_SYSTEM };
}

static void test_ordinary(void **state)
{
	(void)state;
	struct builtin_facts f = ordinary();
	assert_null(builtin_exemption(&f));
	f.program = PROGRAM_UNKNOWN;
	assert_null(builtin_exemption(&f));
	/* What is not known decides nothing. */
	const struct builtin_facts unknown = { .uid = -1, .uid_min = 1000 };
	assert_null(builtin_exemption(&unknown));
}

static void test_exempt(void **state)
{
	(void)state;
	struct builtin_facts f = ordinary();
	f.pid = 1;
	assert_non_null(builtin_exemption(&f));
	f = ordinary();
	f.uid = 0;
	assert_non_null(builtin_exemption(&f));
	f.uid = 999;
	assert_non_null(builtin_exemption(&f));
	f.uid = 1000;
	assert_null(builtin_exemption(&f));
	f.graphics = true;
	assert_non_null(builtin_exemption(&f));
	f = ordinary();
	f.service = true;
	assert_non_null(builtin_exemption(&f));
	f = ordinary();
	f.kernel_thread = true;
	assert_non_null(builtin_exemption(&f));
}

/* The cluster ends pods, not a signal: those of root may be judged, but not the cluster's own.
 */
static void test_pods(void **state)
{
	(void)state;
	struct builtin_facts f = ordinary();
	f.uid = 0;
	f.pod = "";
	assert_non_null(builtin_exemption(&f));
	f.pod = "ml/web-0";
	assert_null(builtin_exemption(&f));
	f.pod = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
	assert_null(builtin_exemption(&f));
	f.pod = "kube-system-2/web-0";
	assert_null(builtin_exemption(&f));
	f.uid = 1001;
	f.pod = "kube-system/web-0";
	assert_string_equal(builtin_exemption(&f), "its pod is in the namespace kube-system");
}

/* Anybody can call a process Xorg: the name counts with a program of the system's. */
static void test_names(void **state)
{
	(void)state;
	static const char *const names[] = { "Xorg", "Xwayland", "gnome-shell", "kwin_wayland",
		"nvidia-persiste", "nv-hostengine", "nvidia-cuda-mps", "dcgm-exporter", "gua",
		"gua-enforce" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct builtin_facts f = ordinary();
		strcpy(f.comm, names[i]);
		assert_non_null(builtin_exemption(&f));
		f.program = PROGRAM_UNKNOWN;
		assert_non_null(builtin_exemption(&f));
		f.program = PROGRAM_OTHER;
		assert_null(builtin_exemption(&f));
	}
	struct builtin_facts f = ordinary();
	strcpy(f.comm, "guarded");
	assert_null(builtin_exemption(&f));
}

static void service_is(const char *cgroup, bool expected)
{
	assert_int_equal(builtin_is_service(cgroup, strlen(cgroup)), expected);
}

static void test_services(void **state)
{
	(void)state;
	service_is("0::/system.slice/ollama.service\n", true);
	service_is("0::/system.slice/ollama.service/inner\n", true);
	service_is("4:memory:/x\n1:name=systemd:/system.slice/nginx.service\n", true);
	/* Jobs of users are theirs, not cron's. */
	service_is("4:memory:/x\n1:name=systemd:/system.slice/cron.service\n", false);
	service_is("0::/system.slice/crond.service/job\n", false);
	service_is("0::/system.slice/atd.service\n", false);
	service_is("0::/system.slice/xcron.service\n", true);
	service_is("0::/system.slice/cron.service.service\n", true);
	service_is("0::/system.slice/docker-3f2a.scope\n", false);
	service_is("0::/system.slice/slurmstepd.scope/job_1/x.service\n", false);
	service_is("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n",
		false);
	service_is("0::/user.slice/system.slice/x.service\n", false);
	service_is("0::/system.slice/.service\n", false);
	service_is("0::/system.slice/", false);
	service_is("", false);
}

static void uid_min_is(const char *file, int64_t expected)
{
	assert_int_equal(builtin_parse_uid_min(file, strlen(file)), expected);
}

static void test_uid_min(void **state)
{
	(void)state;
	uid_min_is("# UID_MIN 5\nSYS_UID_MIN 100\nUID_MIN\t\t 500\nUID_MAX 60000\n", 500);
	uid_min_is("UID_MIN 2000", 2000);
	uid_min_is("UID_MINIMUM 7\n", 1000);
	uid_min_is("UID_MIN\n", 1000);
	uid_min_is("UID_MIN x\n", 1000);
	uid_min_is("UID_MIN -5\n", 1000);
	uid_min_is("", 1000);
	assert_true(builtin_uid_min() > 0);
}

static void test_own_process(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct builtin_facts f = { .pid = (uint32_t)getpid() };
	int proc = -1;
	assert_int_equal(proc_open(&proc, "", &e), 0);
	assert_int_equal(builtin_read(&f, proc, (uint32_t)getpid()), 0);
	assert_int_equal(f.uid, getuid());
	assert_int_equal(f.pid, getpid());
	assert_string_equal(f.comm, "test_builtin");
	assert_int_not_equal(f.program, PROGRAM_UNKNOWN);
	assert_false(f.kernel_thread);
	assert_int_equal(builtin_read(&f, proc, 0x7fffffff), -1);
	close(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary),
		cmocka_unit_test(test_exempt),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_uid_min),
		cmocka_unit_test(test_own_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

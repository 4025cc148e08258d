/* Cgroup paths of every manager that is known, and of none. */
#include "test.h"

#include <stdio.h>

#include "proc/cgroup.h"

#define HEX12 "a1b2c3d4e5f6"
#define HEX64 HEX12 HEX12 HEX12 HEX12 HEX12 "abcd"
#define OTHER64 "ffff" HEX12 HEX12 HEX12 HEX12 HEX12
#define POD "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define POD_ "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"

static struct cgroup_labels parse(const char *path)
{
	struct cgroup_labels labels;
	char line[1024];
	int n = snprintf(line, sizeof(line), "0::%s\n", path);
	cgroup_parse(line, (size_t)n, &labels);
	return labels;
}

static void expect_job(const char *path, const char *job)
{
	struct cgroup_labels got = parse(path);
	assert_string_equal(got.job, job);
	assert_string_equal(got.container, "");
}

static void test_jobs(void **state)
{
	(void)state;
	expect_job("/slurm/uid_1000/job_42/step_batch/task_0", "slurm:42");
	expect_job("/slurm_n7/uid_1000/job_42/step_extern", "slurm:42");
	expect_job("/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", "slurm:42");
	expect_job("/system.slice/n7_slurmstepd.scope/job_42/step_0", "slurm:42");
	expect_job("/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch",
		"slurm:s8FXKTA79XAR00");
	expect_job("/system.slice/slurmstepd.scope/system", "");
	expect_job("/user.slice/job_42", "");
	expect_job("/slurm/uid_1000/job_x", "");
	expect_job("/pbspro.slice/pbspro-815.head.slice", "pbs:815.head");
	expect_job("/pbs_jobs.service/jobid/815.head/x", "pbs:815.head");
	expect_job("/lsf/cluster/job.3021.123.1793952077", "lsf:3021");
	expect_job("/lsf/cluster/job.3021[7].123.1793952077", "lsf:3021[7]");
	expect_job("/lsf/cluster/job.x", "");
	expect_job("/nomad.slice/share.slice/" POD ".web.scope", "nomad:" POD ".web");
	expect_job("/nomad/" POD ".web", "nomad:" POD ".web");
	expect_job("/system.slice/" POD ".web", "");
}

static void expect_container(const char *path, const char *container, const char *pod)
{
	struct cgroup_labels got = parse(path);
	assert_string_equal(got.container, container);
	assert_string_equal(got.pod, pod);
}

static void test_containers(void **state)
{
	(void)state;
	expect_container("/system.slice/docker-" HEX64 ".scope", "docker:" HEX12, "");
	expect_container("/docker/" HEX64, "docker:" HEX12, "");
	expect_container("/" HEX64, "docker:" HEX12, "");
	expect_container("/ecs/task/" HEX64, "container:" HEX12, "");
	expect_container(
		"/machine.slice/libpod-" HEX64 ".scope/container", "podman:" HEX12, "");
	expect_container("/libpod_parent/libpod-" HEX64, "podman:" HEX12, "");
	expect_container("/a.service/libpod-payload-" HEX64, "podman:" HEX12, "");
	expect_container("/machine.slice/libpod-conmon-" HEX64 ".scope", "", "");
	expect_container("/system.slice/crio-conmon-" HEX64 ".scope", "", "");
	expect_container("/system.slice/crio-" HEX64 ".scope", "crio:" HEX12, "");
	expect_container("/lxc.payload.web/init.scope", "lxc:web", "");
	expect_container("/lxc.monitor.web", "", "");
	expect_container("/lxc/web", "lxc:web", "");
	expect_container("/machine.slice/machine-deb\\x2d12.scope", "machine:deb-12", "");
	expect_container(
		"/machine.slice/systemd-nspawn@deb.service/payload", "machine:deb", "");
	expect_container("/docker/" HEX12, "", "");
	expect_container("/docker/X" HEX64, "", "");
}

static void test_pods(void **state)
{
	(void)state;
	expect_container("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
			 ".slice/cri-containerd-" HEX64 ".scope",
		"containerd:" HEX12, POD);
	expect_container("/kubepods.slice/kubepods-pod" POD_ ".slice", "", POD);
	expect_container("/kubepods/besteffort/pod" POD "/" HEX64, "container:" HEX12, POD);
	expect_container("/kubelet/kubepods/pod" POD "/" HEX64, "container:" HEX12, POD);
	expect_container("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_
			 ".slice/cri-containerd-" HEX64 ".scope",
		"containerd:" HEX12, POD);
	expect_container("/kubepods/pod0123456789abcdef0123456789abcdef", "",
		"0123456789abcdef0123456789abcdef");
	expect_container("/system.slice/containerd.service/kubepods-pod" POD_
			 ".slice:cri-containerd:" HEX64,
		"containerd:" HEX12, POD);
	expect_container("/kubepods/pod12", "", "");
	expect_container("/user.slice/pod" POD, "", "");
}

#define USERS "/user.slice/user-1000.slice/user@1000.service"

/* A name is believed only on the path that its manager owns. */
static void test_places(void **state)
{
	(void)state;
	expect_job(USERS "/slurm/uid_1001/job_42", "");
	expect_job(USERS "/system.slice/slurmstepd.scope/job_42", "");
	expect_job(USERS "/pbspro.slice/pbspro-815.head.slice", "");
	expect_job("/projects/slurm/uid_1001/job_42", "");
	expect_job("/system.slice/web.service/slurmstepd.scope/job_42", "");
	expect_job("/machine.slice/slurmstepd.scope/job_42", "");
	expect_job("/../system.slice/slurmstepd.scope/job_42", "slurm:42");
	expect_job("/slurm/../slurm/uid_1001/job_42", "");
	expect_job("/system.slice/slurmstepd.scope/job_42/step_0/job_43", "slurm:42");
	expect_container(USERS "/user.slice/docker-" HEX64 ".scope", "docker:" HEX12, "");
	expect_container(USERS "/a.slice/libpod-" HEX64 ".scope/b", "podman:" HEX12, "");
	expect_container(USERS "/a.service/libpod-payload-" HEX64, "podman:" HEX12, "");
	expect_container(USERS "/docker/" HEX64, "", "");
	expect_container(USERS "/lxc.payload.web", "", "");
	expect_container(USERS "/crio-" HEX64 ".scope", "", "");
	expect_container(USERS "/machine.slice/machine-deb.scope", "", "");
	expect_container(USERS "/kubepods.slice/kubepods-pod" POD_ ".slice/docker-" HEX64
			       ".scope",
		"docker:" HEX12, "");
	expect_container(
		"/user.slice/user-1000.slice/docker-" HEX64 ".scope", "docker:" HEX12, "");
	expect_container("/projects/alice/" HEX64, "", "");
	expect_container("/a.slice/b.slice/docker-" HEX64 ".scope", "docker:" HEX12, "");
	expect_container("/a.slice/b/docker-" HEX64 ".scope", "", "");
	expect_container("/../docker-" HEX64 ".scope", "docker:" HEX12, "");
	expect_container("/../projects/pod" POD "/" HEX64, "", "");
	expect_container("/../a.slice/user@1000.service/pod" POD "/" HEX64, "", "");
	expect_container("/docker/" OTHER64 "/kubelet/kubepods/pod" POD "/" HEX64,
		"docker:ffffa1b2c3d4", "");
}

static void expect_slice(const char *text, int64_t uid)
{
	struct cgroup_labels got;
	cgroup_parse(text, strlen(text), &got);
	assert_int_equal(got.slice_uid, uid);
}

static void test_slices(void **state)
{
	(void)state;
	expect_slice("0::/user.slice/user-1000.slice/session-3.scope\n", 1000);
	expect_slice("0::" USERS "/user.slice/user-1001.slice/session-3.scope\n", 1000);
	expect_slice("0::/user.slice/user-0.slice\n", 0);
	expect_slice("1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n"
		     "0::/user.slice/user-1000.slice/session-3.scope\n",
		1000);
	expect_slice("1:name=systemd:/user.slice/user-1000.slice\n"
		     "0::/user.slice/user-1001.slice\n1:name=systemd:/\n",
		-1);
	expect_slice("3:memory:/user.slice/user-1000.slice\n", -1);
	expect_slice("0::/user.slice/user-1000.slice", -1);
	expect_slice("0::/user.slice/user-.slice\n", -1);
	expect_slice("0::/user.slice/user-01.slice\n", -1);
	expect_slice("0::/user.slice/user-4294967295.slice\n", -1);
	expect_slice("0::/user.slice/user-1x.slice\n", -1);
	expect_slice("0::/system.slice/user.slice/user-1000.slice\n", -1);
	expect_slice("0::/../user.slice/user-1000.slice\n", -1);
	expect_slice("0::/user.slice/user-1000.slice/../user-1001.slice\n", -1);
	expect_slice("0::/\n", -1);
}

static void expect_unit(const char *path, const char *unit)
{
	assert_string_equal(parse(path).unit, unit);
}

static void test_units(void **state)
{
	(void)state;
	expect_unit("/user.slice/user-1000.slice/session-3.scope", "session-3.scope");
	expect_unit("/user.slice/user-1000.slice/user@1000.service/app.slice/app-code-1.scope",
		"app-code-1.scope");
	expect_unit("/system.slice/system-vllm.slice/vllm@llama\\x2d3.service",
		"vllm@llama-3.service");
	expect_unit("/system.slice/a\\x1b\\xzz\\x5.service", "a\\x1B\\xzz\\x5.service");
	expect_unit("/system.slice/docker-" HEX64 ".scope", "");
	expect_unit("/system.slice/ollama.service (deleted)", "ollama.service");
	expect_unit("/system.slice/.service", "");
	expect_unit("/../../x.slice", "");
	expect_unit("/", "");
	/* Who was given a cgroup chooses the names below it. */
	expect_unit("/system.slice/jupyter.service/ollama.service", "jupyter.service");
	expect_unit("/system.slice/jupyter.service/a.slice/b.scope", "jupyter.service");
	expect_unit("/user.slice/user-1000.slice/session-3.scope/x.service", "session-3.scope");
	expect_unit("/system.slice/slurmstepd.scope/job_42/x.service", "slurmstepd.scope");
	expect_unit("/slurm/uid_1000/job_42/x.service", "");
	expect_unit("/own/x.service", "");
	/* A container may run a service manager: its units are what it says they are. */
	expect_unit("/system.slice/docker-" HEX64 ".scope/system.slice/ollama.service",
		"ollama.service");
	expect_unit("/lxc.payload.lab/system.slice/ollama.service", "ollama.service");
}

/* Version 1: some controllers stay at the root, others carry the path. */
static void test_many_lines(void **state)
{
	(void)state;
	static const char text[] = "12:devices:/slurm/uid_1000/job_42/step_0\n"
				   "6:memory:/\n"
				   "garbage\n"
				   "::\n"
				   "1:name=systemd:/system.slice/slurmd.service\n"
				   "0::/system.slice/slurmd.service\n"
				   "0::/slurm/uid_1/job_99";
	struct cgroup_labels got;
	cgroup_parse(text, sizeof(text) - 1, &got);
	assert_string_equal(got.job, "slurm:42");
	assert_string_equal(got.unit, "slurmd.service");
	assert_string_equal(got.container, "");
	cgroup_parse("", 0, &got);
	assert_string_equal(got.job, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_many_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

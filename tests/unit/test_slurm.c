/* Slurm's lists of hosts and resources, and jobs as scontrol prints them. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "lease/slurm_gres.h"
#include "lease/slurm_jobs.h"

static void test_resources(void **state)
{
	(void)state;
	static const struct {
		const char *text, *cards;
		int share;
	} cases[] = {
		{ "gpu:a100:2(IDX:0,3)", "0,3", 1 },
		{ "gpu:4(IDX:3,5-7)", "3,5,6,7", 1 },
		{ "gpu:(null):2(IDX:0-1)", "0,1", 1 },
		{ "gpu:rtx2080:1(IDX:1),gg:g0(CNT:1)", "1", 1 },
		{ "gg:g0(CNT:1),gpu:a100:1(IDX:2)", "2", 1 },
		{ "gpu:a100:1(IDX:0),gpu:v100:2(IDX:4-5)", "0,4,5", 1 },
		{ "gpu:fake1:0(IDX:N/A)", "", 0 },
		{ "gpu:a100:4", "", 0 },
		{ "(null)", "", 0 },
		{ "", "", 0 },
		{ "shard:8(0/5,5/5,3/5,0/5)", "1,2", 0 },
		{ "shard:2(2/8,2/8)", "0,1", 4 },
		{ "shard:a100:4(0/4,4/4)", "1", 1 },
		{ "shard:1(-/5,1/5)", "1", 5 },
		{ "shard:2(IDX:0)", "0", 0 },
		{ "mps:50(50/100,0/100)", "0", 2 },
		{ "mps:a100:30(0/100,30/100)", "1", 0 },
		{ "gpu:1(IDX:0),shard:5(-/5,1/5)", "0,1", 0 },
		{ "gpu:1(IDX:999999999999)", "", 0 },
		{ "gpu:1(IDX:5-2)", "", 0 },
		{ "gpus:1(IDX:0),xgpu:1(IDX:0)", "", 0 },
		{ "gpu:1(IDX:0", "0", 1 },
		{ "shard:1(1/0,/,1/", "", 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slurm_gres g = { 0 };
		slurm_gres_add(&g, cases[i].text);
		assert_string_equal(str_text(&g.cards), cases[i].cards);
		if (*cases[i].cards)
			assert_int_equal(g.share, cases[i].share);
		str_finish(&g.cards);
	}
}

static void test_hosts(void **state)
{
	(void)state;
	static const struct {
		const char *list, *host;
		long place;
	} cases[] = {
		{ "gpu01", "gpu01", 0 },
		{ "gpu01", "gpu1", -1 },
		{ "a,b,c", "c", 2 },
		{ "dgx-[40,48]", "dgx-48", 1 },
		{ "dgx-[40,48]", "dgx-41", -1 },
		{ "n[001-010,100]", "n007", 6 },
		{ "n[001-010,100]", "n7", -1 },
		{ "n[001-010,100],login", "login", 11 },
		{ "r[0-1]n[0-3]", "r1n2", 6 },
		{ "r[0-1]n[0-3]-ib,x", "x", 8 },
		{ "n[8-11]", "n10", 2 },
		{ "", "n", -1 },
		{ "n[", "n", 0 },
		{ "n[1-999999999],m", "m", -1 },
		{ "n[x]", "n", -1 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(slurm_gres_host(cases[i].list, cases[i].host), cases[i].place);
}

/* The jobs of an answer as one text. */
static void take(void *context, const struct lease_file *f)
{
	str_addf(context, "%s%s%s %s(%lld) %s/%s %s share %lld %.0f-%.0f %s;", f->id,
		f->task ? "=" : "", f->task ? f->task : "", f->user ? f->user : "-",
		(long long)f->uid, f->account ? f->account : "-", f->name ? f->name : "-",
		f->cards, (long long)f->share, f->since_s, f->until_s,
		f->sluid ? f->sluid : "-");
	assert_string_equal(f->watched, "yes");
}

/* Reads the text of job 4, or JSON; returns what was taken, or why nothing was. */
static const char *read_jobs(const char *answer, const char *node)
{
	static char result[512];
	char bytes[8192];
	struct str out = { 0 };
	struct err e = { 0 };
	const struct slurm_jobs j = { node, take, &out };
	strcpy(bytes, answer);
	int rc = *answer == '{' ? slurm_jobs_json(&j, bytes, strlen(bytes), &e)
				: slurm_jobs_text(&j, "4", bytes, strlen(bytes), &e);
	snprintf(result, sizeof(result), "%s", rc ? e.text : str_text(&out));
	str_finish(&out);
	return result;
}

#define HEAD "JobId=4 ArrayJobId=3 ArrayTaskId=2 JobName="
#define REST                                                                                   \
	"\n   UserId=alice(1000) GroupId=alice(1000) MCS_label=N/A\n"                          \
	"   Priority=1 Nice=0 Account=vision QOS=normal\n"                                     \
	"   JobState=RUNNING Reason=None Dependency=(null)\n"                                  \
	"   SubmitTime=1 EligibleTime=2 AccrueTime=2\n"                                        \
	"   StartTime=1700000000 EndTime=2023-11-15T00:00:00 Deadline=N/A\n"                   \
	"   NodeList=dgx-[40-41,48]\n   JOB_GRES=gpu:a100:9\n"                                 \
	"     Nodes=dgx-[40,48] CPU_IDs=0-3 Mem=1024 GRES=gpu:a100:4(IDX:3,5-7)\n"             \
	"     Nodes=dgx-41 CPU_IDs=0-3 Mem=1024 GRES=gpu:a100:1(IDX:0)\n"                      \
	"   MinCPUsNode=1 MinMemoryNode=1G MinTmpDiskNode=0\n"
#define TAIL "   Command=/home/alice/x.sh\n   WorkDir=/home/alice\n   Power=\n\n"

static void test_text(void **state)
{
	(void)state;
	assert_string_equal(read_jobs(HEAD "big one" REST TAIL, "dgx-48"),
		"4=3_2 alice(1000) vision/big one 3,5,6,7 share 1 1700000000-1700006400 -;");
	assert_string_equal(read_jobs(HEAD "x" REST TAIL, "dgx-41"),
		"4=3_2 alice(1000) vision/x 0 share 1 1700000000-1700006400 -;");
	assert_string_equal(read_jobs(HEAD "x" REST TAIL, "dgx-42"), "");
	assert_string_equal(read_jobs("JobId=4 JobName=x\n   UserId=a(1) GroupId=g(1)\n"
				      "   SLUID=s1\n   JobState=COMPLETED\n"
				      "     Nodes=n GRES=gpu:1(IDX:0)\n",
				    "n"),
		"");
	assert_string_equal(read_jobs("JobId=4 JobName=x SLUID=s1\n   UserId=a(1)\n"
				      "   Nice=0 Account=(null)\n   JobState=SUSPENDED\n   "
				      "StartTime=Unknown EndTime=Unknown\n"
				      "     Nodes=n Mem=1 GRES=shard:1(1/4)\n",
				    "n"),
		"4 a(1) -/x SLUID=s1 0 share 4 nan-nan -;");
	/* An array that waits is not one of its tasks. */
	assert_string_equal(read_jobs("JobId=4 ArrayJobId=4 ArrayTaskId=1-9%2 JobName=x\n"
				      "   UserId=a(1)\n   JobState=RUNNING\n"
				      "     Nodes=n Mem=1 GRES=gpu:1(IDX:0)\n",
				    "n"),
		"4 a(1) -/x 0 share 1 nan-nan -;");
	assert_string_equal(read_jobs("slurm_load_jobs error: nothing", "n"),
		"the answer is not about job 4");
	assert_string_equal(
		read_jobs("JobId=5 JobName=x" REST, "dgx-41"), "the answer is not about job 4");
}

/* Users choose names and paths. */
static void test_forged_text(void **state)
{
	(void)state;
	/* In the name, blanks cannot begin another field. */
	assert_string_equal(
		read_jobs(HEAD "x UserId=bob(1001) JobState=RUNNING" REST TAIL, "dgx-41"),
		"4=3_2 alice(1000) vision/x UserId=bob(1001) JobState=RUNNING 0 share 1 "
		"1700000000-1700006400 -;");
	static const char *const names[] = { "x\n   UserId=bob(1001)", "x\nJobId=4 JobName=y",
		"x\n   JobState=COMPLETED", "x\n   Nodes=dgx-41 GRES=gpu:8(IDX:0-7)" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[4096];
		snprintf(text, sizeof(text), "%s%s%s", HEAD, names[i], REST TAIL);
		assert_string_equal(read_jobs(text, "dgx-41"),
			"the answer about job 4 has a field twice; its name may be forged");
	}
	/* A path with a newline: nothing behind it counts. */
	assert_string_equal(read_jobs(HEAD "x" REST "   WorkDir=/tmp/\n   UserId=bob(1001)\n"
					   "   Nodes=dgx-41 GRES=gpu:8(IDX:0-7)\n",
				    "dgx-41"),
		"4=3_2 alice(1000) vision/x 0 share 1 1700000000-1700006400 -;");
}

static void test_json(void **state)
{
	(void)state;
	/* 23.02, and newer with objects for numbers, words in a list, and nodes in an object.
	 */
	assert_string_equal(
		read_jobs("{\"jobs\":[{\"job_id\":4,\"array_job_id\":0,\"array_task_id\":"
			  "4294967294,"
			  "\"user_id\":1000,\"user_name\":\"alice\","
			  "\"account\":\"vision\",\"name\":\"big\\none\",\"job_state\":"
			  "\"RUNNING\","
			  "\"start_time\":1700000000,\"end_time\":1700006400,"
			  "\"job_resources\":{\"nodes\":\"dgx-[40-41]\"},"
			  "\"gres_detail\":[\"gpu:a100:1(IDX:2)\",\"gpu:a100:2(IDX:0-1)\"]},"
			  "{\"job_id\":{\"set\":true,\"infinite\":false,\"number\":5},\"user_"
			  "id\":7,\"array_job_id\":{\"set\":true,\"infinite\":false,\"number\":"
			  "3},"
			  "\"array_task_id\":{\"set\":true,\"infinite\":false,\"number\":0},"
			  "\"user_name\":\"\",\"job_state\":[\"RUNNING\",\"COMPLETING\"],"
			  "\"start_time\":{\"set\":true,\"infinite\":false,\"number\":"
			  "1700000001},"
			  "\"end_time\":{\"set\":true,\"infinite\":true,\"number\":0},"
			  "\"nodes\":\"dgx-41\",\"job_resources\":{\"nodes\":{\"list\":\"dgx-"
			  "41\"}},"
			  "\"gres_detail\":[\"gpu:1(IDX:3)\"]},"
			  "{\"job_id\":6,\"job_state\":\"COMPLETED\",\"nodes\":\"dgx-41\","
			  "\"gres_detail\":[\"gpu:1(IDX:3)\"]},"
			  "{\"job_id\":7,\"job_state\":\"RUNNING\",\"nodes\":\"dgx-41\","
			  "\"gres_detail\":[]},"
			  "{\"job_id\":8,\"job_state\":\"PENDING\",\"nodes\":\"\"},7]}",
			"dgx-41"),
		"4 alice(1000) vision/big\none 0,1 share 1 1700000000-1700006400 -;"
		"5=3_0 (7) -/- 3 share 1 1700000001-nan -;");
	assert_string_equal(read_jobs("{\"jobs\":[]}", "n"), "");
	assert_string_equal(read_jobs("{\"errors\":[]}", "n"),
		"the answer is not a list of jobs: it has no 'jobs'");
	assert_non_null(strstr(read_jobs("{\"jobs\":[", "n"), "not a list of jobs: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_forged_text),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

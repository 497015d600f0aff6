// SPDX-License-Identifier: MIT
/* Remedies of the doctor, on distributions and kernels that this machine is not. */
#include "config.h"

#include <stdio.h>

#include "tools/spyre/finding.h"

#include "tools_check.h"

#define RELEASE "6.12.9-test"

static char path[128];

static void setup(void)
{
	make_folder();
	snprintf(path, sizeof(path), "%s/os-release", folder);
}

static void teardown(void)
{
	unlink(path);
	remove_folder();
}

static const char *remedy(const char *os_release, const char *release)
{
	static struct findings findings;
	FILE *file;

	unlink(path);
	if (os_release) {
		file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		ck_assert_int_ge(fputs(os_release, file), 0);
		ck_assert_int_eq(fclose(file), 0);
	}
	memset(&findings, 0, sizeof(findings));
	finding_add(&findings, "module", FINDING_WARN, "no module");
	finding_fix_no_module(&findings, path, release);
	return findings.at[0].fix;
}

static const struct {
	const char *os_release, *command;
} distributions[] = {
	{ "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\nVERSION_ID=\"13\"\n",
	  "apt install dkms linux-headers-" RELEASE },
	{ "ID=ubuntu\nID_LIKE=debian\n", "apt install dkms linux-headers-" RELEASE },
	{ "ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "apt install dkms linux-headers-" RELEASE },
	{ "NAME=\"Fedora Linux\"\nID=fedora\n", "dnf install dkms kernel-devel-" RELEASE },
	{ "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
	  "dnf install dkms kernel-devel-" RELEASE },
	{ "NAME='Arch Linux'\nID=arch\n", "pacman -S dkms linux-headers" },
	{ "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
	  "zypper install dkms kernel-default-devel" },
};

/* The command, then DKMS, then the module; with no word before that is no command. */
START_TEST(distribution)
{
	static const char before[] = "for /dev/accel nodes: ";
	static const char after[] = "; dkms install spyre-vdev/" PACKAGE_VERSION
				    "; modprobe spyre_vdev (";
	const char *fix = remedy(distributions[_i].os_release, RELEASE);
	const char *command = distributions[_i].command;

	ck_assert_msg(!strncmp(fix, before, strlen(before)), "%s", fix);
	fix += strlen(before);
	ck_assert_msg(!strncmp(fix, command, strlen(command)), "'%s', expected '%s'", fix, command);
	fix += strlen(command);
	ck_assert_msg(!strncmp(fix, after, strlen(after)), "'%s', expected '%s'", fix, after);
}
END_TEST

/* A package manager is proposed only where it is known: words that fit anything remain. */
START_TEST(unknown_distribution)
{
	static const char *const unknown[] = {
		NULL, "", "ID=\n", "ID=gentoo\n", "NAME=debian\n", "ID=notdebian\nID_LIKE=debianish\n",
	};
	static const char *const managers[] = { "apt ", "dnf ", "pacman ", "zypper " };

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		const char *fix = remedy(unknown[i], RELEASE);

		ck_assert_msg(strstr(fix, "install dkms and the headers of kernel " RELEASE ";"),
			      "%s", fix);
		for (size_t j = 0; j < sizeof(managers) / sizeof(managers[0]); j++)
			ck_assert_msg(!strstr(fix, managers[j]), "%s", fix);
	}
}
END_TEST

/* On a kernel that the module does not support, no package helps. */
START_TEST(old_kernel)
{
	static const char *const old[] = { "6.1.0-37-amd64", "6.11.11", "5.15.0-91-generic" };
	static const char *const good[] = { "6.12.0", "6.13-rc1", "7.0.1", "unknown" };
	size_t i;

	for (i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		const char *fix = remedy("ID=debian\n", old[i]);

		ck_assert_msg(strstr(fix, "need Linux 6.12 or later"), "%s", fix);
		ck_assert_msg(!strstr(fix, "install"), "%s", fix);
	}
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *fix = remedy("ID=debian\n", good[i]);

		ck_assert_msg(strstr(fix, "apt install"), "%s", fix);
		ck_assert_msg(strstr(fix, good[i]), "%s", fix);
	}
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("finding");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, distribution, 0,
			    sizeof(distributions) / sizeof(distributions[0]));
	tcase_add_test(tests, unknown_distribution);
	tcase_add_test(tests, old_kernel);
	return run_case("tools_finding", tests);
}

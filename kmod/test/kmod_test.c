// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the module from outside, as root, with a controller that is bound to it:
 *
 *   kmod_test DDDD:BB:DD.F
 *
 * Prints "PASS name", "FAIL name: why" or "SKIP name: why" for each, and END.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests.h"

int main(int count, char **arguments)
{
	bool good = true;
	char path[128];
	int i;

	if (count != 2) {
		fprintf(stderr, "usage: kmod_test DDDD:BB:DD.F\n");
		return 2;
	}
	function = arguments[1];
	sprintf(path, "/sys/bus/pci/devices/%s/iommu_group", function);
	translated = access(path, F_OK) == 0;
	for (i = 0; i < access_test_count; i++)
		good &= run_test(access_tests[i].name, access_tests[i].run);
	for (i = 0; i < range_test_count; i++)
		good &= run_test(range_tests[i].name, range_tests[i].run);
	for (i = 0; i < end_test_count; i++)
		good &= run_test(end_tests[i].name, end_tests[i].run);
	printf("END\n");
	return good ? 0 : 1;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the module from outside, as root, with a controller that is bound to it:
 *
 *   kmod_test DDDD:BB:DD.F [unsafe | faults]
 *
 * unsafe: interrupts are not remapped, and the kernel copies memory for functions without translation (swiotlb=force). faults: the
 * kernel can make its own functions fail. Prints "PASS name", "FAIL name: why" or "SKIP name: why" for each, and END.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests.h"

static bool run_all(const struct test *tests, int count)
{
	bool good = true;

	for (int i = 0; i < count; i++)
		good &= run_test(tests[i].name, tests[i].run);
	return good;
}

int main(int count, char **arguments)
{
	char path[128];
	bool good;

	if (count < 2) {
		fprintf(stderr, "usage: kmod_test DDDD:BB:DD.F [unsafe | faults]\n");
		return 2;
	}
	function = arguments[1];
	sprintf(path, "/sys/bus/pci/devices/%s/iommu_group", function);
	translated = access(path, F_OK) == 0;
	if (count > 2 && strcmp(arguments[2], "faults") == 0) {
		good = run_all(fault_tests, fault_test_count);
	} else if (count > 2) {
		good = run_all(unsafe_tests, unsafe_test_count);
	} else {
		good = run_all(access_tests, access_test_count);
		good &= run_all(range_tests, range_test_count);
		good &= run_all(end_tests, end_test_count);
	}
	printf("END\n");
	return good ? 0 : 1;
}

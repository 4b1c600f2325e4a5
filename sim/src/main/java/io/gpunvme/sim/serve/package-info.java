/**
 * The embedded controller as a PCI function for other processes, over vfio-user. docs/vfio-user.md.
 */
@NullMarked
package io.gpunvme.sim.serve;

import org.jspecify.annotations.NullMarked;

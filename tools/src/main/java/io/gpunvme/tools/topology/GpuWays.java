package io.gpunvme.tools.topology;

import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciWay;
import org.jspecify.annotations.Nullable;

/**
 * The ways between two GPUs.
 *
 * @param a the one with the lower address
 * @param b the other
 * @param way over PCI Express
 * @param nvlink the links between them, or the fewer of both to the NVSwitches; null if there are
 *     none, or it is not known
 */
public record GpuWays(
    MachineFunction a, MachineFunction b, PciWay way, NvLinks.@Nullable Bundle nvlink) {}

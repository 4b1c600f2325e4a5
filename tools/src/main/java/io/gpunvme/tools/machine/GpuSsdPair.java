package io.gpunvme.tools.machine;

/**
 * A GPU and an SSD.
 *
 * @param gpu the GPU
 * @param ssd the SSD
 * @param way the way between them
 */
public record GpuSsdPair(MachineFunction gpu, MachineFunction ssd, PciWay way) {}

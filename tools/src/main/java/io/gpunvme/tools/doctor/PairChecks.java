package io.gpunvme.tools.doctor;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.GpuSsdPair;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciWay.Route;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The ways between GPUs and SSDs. */
final class PairChecks {
  private PairChecks() {}

  static List<Finding> of(Machine machine) {
    List<Finding> found = new ArrayList<>();
    List<GpuSsdPair> pairs = machine.pairs();
    if (pairs.isEmpty()) {
      return found;
    }
    for (MachineFunction gpu : machine.gpus()) {
      route(gpu, pairs, found);
    }
    accessControl(pairs, found);
    for (MachineFunction ssd : machine.ssds()) {
      numa(machine, ssd, found);
    }
    return found;
  }

  private static void route(MachineFunction gpu, List<GpuSsdPair> pairs, List<Finding> found) {
    List<GpuSsdPair> near =
        pairs.stream()
            .filter(p -> p.gpu().address().equals(gpu.address()))
            .filter(p -> p.way().meeting().isPresent())
            .toList();
    if (near.isEmpty()) {
      found.add(
          Finding.note(
              "no-common-switch",
              gpu.address().toString(),
              "no SSD is below the same switch as this GPU",
              "traffic between them crosses the root complex, which some machines do slowly or not"
                  + " at all",
              "put an SSD below the GPU's switch, if there is one (gpunvme list shows the pairs)"));
    } else {
      found.add(
          Finding.ok(
              "common-switch",
              gpu.address().toString(),
              near.stream()
                  .map(p -> p.ssd().address().toString())
                  .collect(Collectors.joining(", ", "shares a port or switch with ", ""))));
    }
  }

  private static void accessControl(List<GpuSsdPair> pairs, List<Finding> found) {
    TreeSet<PciAddress> ports = new TreeSet<>();
    pairs.stream()
        .filter(p -> p.way().route() == Route.SWITCH)
        .forEach(p -> ports.addAll(p.way().redirected()));
    if (!ports.isEmpty()) {
      found.add(
          Finding.note(
              "acs-redirect",
              "pci",
              "ports that send traffic between peers up to the root complex (ACS): "
                  + ports.stream().map(PciAddress::toString).collect(Collectors.joining(", ")),
              "a GPU and an SSD below one switch do not use the short way through it",
              "setpci -s PORT ECAP_ACS+6.w=0 on each, if no virtual machine relies on the"
                  + " separation"));
    }
  }

  private static void numa(Machine machine, MachineFunction ssd, List<Finding> found) {
    boolean near =
        machine.gpus().stream()
            .anyMatch(
                g -> g.numaNode() < 0 || ssd.numaNode() < 0 || g.numaNode() == ssd.numaNode());
    if (!near) {
      found.add(
          Finding.note(
              "numa",
              ssd.address().toString(),
              "on NUMA node %d, where no GPU is".formatted(ssd.numaNode()),
              "its data crosses the link between processors",
              "use an SSD on a GPU's node where you can"));
    }
  }
}

package io.gpunvme.tools.fleet;

import static io.gpunvme.tools.fleet.Parameter.GPU_LINK;
import static io.gpunvme.tools.fleet.Parameter.GPU_READ;
import static io.gpunvme.tools.fleet.Parameter.HOST;
import static io.gpunvme.tools.fleet.Parameter.NIC;
import static io.gpunvme.tools.fleet.Parameter.PEER_LINK;

import io.gpunvme.tools.fleet.FluidSimulation.Flow;
import io.gpunvme.tools.fleet.FluidSimulation.Link;
import io.gpunvme.tools.fleet.FluidSimulation.Use;
import java.util.ArrayList;
import java.util.List;

/**
 * Machines of a fleet that do the same at the same time, with the links of one of them. GPUs that
 * do the same are a group: all of a machine if each has a process, else each is one.
 */
final class Machines {
  private final FluidSimulation simulation;
  private final double count;
  private final int width;
  private final Link ssds;
  private final Link host;
  private final Link in;
  private final Link out;
  private final List<Link> paths = new ArrayList<>();
  private final List<Link> gpuLinks = new ArrayList<>();
  private final List<Link> peerLinks = new ArrayList<>();
  private final List<Flow> flows = new ArrayList<>();
  private boolean alive = true;

  /**
   * @param ssdRate bytes a second that one SSD reads or writes, whichever is simulated
   */
  Machines(
      FluidSimulation simulation,
      Fleet fleet,
      Parameters parameters,
      double count,
      double ssdRate) {
    this.simulation = simulation;
    this.count = count;
    int groups = fleet.oneProcess() ? (int) fleet.gpus() : 1;
    width = (int) fleet.gpus() / groups;
    ssds = simulation.link("own SSDs", fleet.ssds() * ssdRate, count);
    out = simulation.link("network out", parameters.get(NIC), count);
    in = simulation.link("network in", parameters.get(NIC), count);
    host = simulation.link("host memory", parameters.get(HOST), count);
    for (int i = 0; i < groups; i++) {
      double copies = count * width;
      paths.add(simulation.link("pinned path", parameters.get(GPU_READ), copies));
      gpuLinks.add(simulation.link("GPU links", parameters.get(GPU_LINK), copies));
      peerLinks.add(simulation.link("GPU peers", parameters.get(PEER_LINK), copies));
    }
  }

  double count() {
    return count;
  }

  int groups() {
    return paths.size();
  }

  /** GPUs of a group. */
  int width() {
    return width;
  }

  private double gpus() {
    return (double) width * groups();
  }

  // ---- what flows cross

  /** From host memory to a GPU of a group, through pinned memory. */
  List<Use> toGpu(int group) {
    return List.of(
        new Use(host, width), new Use(paths.get(group), 1), new Use(gpuLinks.get(group), 1));
  }

  /** From a GPU of each group to host memory; all groups in one flow. */
  List<Use> fromGpus() {
    List<Use> uses = new ArrayList<>();
    gpuLinks.forEach(link -> uses.add(new Use(link, 1)));
    uses.add(new Use(host, gpus()));
    return uses;
  }

  /** Own SSDs, by so many flows of each machine. */
  Use ssds(double members) {
    return new Use(ssds, members);
  }

  /** Own network, by so many flows of each machine. */
  Use in(double members) {
    return new Use(in, members);
  }

  Use out(double members) {
    return new Use(out, members);
  }

  /** What a GPU of each group gets from the network, if each machine has one flow for all. */
  List<Use> networkToGpus() {
    return gpuLinks.stream().map(link -> new Use(link, 1 / gpus())).toList();
  }

  /** From each GPU of a group to all others of its machine; each byte counts once a receiver. */
  List<Use> toPeers(int group) {
    if (groups() == 1) {
      return List.of(new Use(peerLinks.get(group), 2));
    }
    List<Use> uses = new ArrayList<>();
    for (int i = 0; i < groups(); i++) {
      uses.add(new Use(peerLinks.get(i), i == group ? 1 : 1.0 / (groups() - 1)));
    }
    return uses;
  }

  // ---- what happens, until the machines fail

  void after(double seconds, Runnable then) {
    simulation.after(seconds, whileAlive(then));
  }

  void flow(double bytes, List<Use> uses, Runnable then) {
    if (alive) {
      flows.add(simulation.flow(bytes, uses, whileAlive(then)));
    }
  }

  /** Nothing that they do goes on. */
  void fail() {
    alive = false;
    flows.forEach(simulation::cancel);
    flows.clear();
  }

  private Runnable whileAlive(Runnable then) {
    return () -> {
      if (alive) {
        then.run();
      }
    };
  }
}

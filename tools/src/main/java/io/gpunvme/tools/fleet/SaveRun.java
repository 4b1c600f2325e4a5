package io.gpunvme.tools.fleet;

import io.gpunvme.tools.fleet.FluidSimulation.Link;
import io.gpunvme.tools.fleet.FluidSimulation.Use;
import java.util.ArrayList;
import java.util.List;

/** One simulated save of a checkpoint: every GPU writes an even part, all at the same time. */
final class SaveRun {
  private SaveRun() {}

  static Traffic of(Fleet fleet, Parameters parameters, Way way) {
    FluidSimulation simulation = new FluidSimulation();
    double nic = parameters.get(Parameter.NIC);
    Link fabric =
        simulation.link(
            "fabric", fleet.machines() * nic / parameters.get(Parameter.OVERSUBSCRIPTION), 1);
    Link pool =
        simulation.link("pool", LoadRun.poolRate(fleet, parameters, Parameter.SSD_WRITE), 1);
    Machines all =
        new Machines(
            simulation, fleet, parameters, fleet.machines(), parameters.get(Parameter.SSD_WRITE));
    List<Use> uses = new ArrayList<>(all.fromGpus());
    double members = fleet.gpus();
    switch (way) {
      case CACHE -> throw new IllegalArgumentException("nothing is written to the page cache");
      case OWN -> uses.add(all.ssds(members));
      case PEERS -> {
        boolean others = fleet.machines() > 1;
        uses.add(all.ssds(others ? 2 * members : members));
        if (others) {
          uses.add(all.out(members));
          uses.add(all.in(members));
          uses.add(new Use(fabric, members * fleet.machines()));
        }
      }
      case POOL -> {
        uses.add(all.out(members));
        uses.add(new Use(fabric, members * fleet.machines()));
        uses.add(new Use(pool, members * fleet.machines()));
      }
    }
    double part = (double) fleet.checkpointBytes() / fleet.machines() / fleet.gpus();
    simulation.flow(part, uses, () -> {});
    return Traffic.of(simulation, simulation.run());
  }
}

/**
 * An NVMe controller made of software, stricter than hardware, behind the same {@code PciFunction}
 * as a real one.
 *
 * <p>In: its engine (registers, queues, doorbells, workers, the bus it may reach, interrupts) and
 * its contents (commands, namespaces, features, log pages, fault rules); the bytes of namespaces
 * are one package down, in {@code media}. It uses {@code spec}, {@code memory} and {@code pci}.
 * Out: the host's side, {@code driver}, which it must never use: the two meet only in bus memory
 * and registers. Start reading at {@link io.gpunvme.sim.SimulatedController}, then {@code Worker},
 * {@code CommandPipeline}, {@code CompletionPoster}. Memory of another device is reached by copies:
 * {@code RemoteChannel}, then {@code RemoteMover} for data and {@code FetchAhead} and {@code
 * RemoteRing} for queues.
 */
@NullMarked
package io.gpunvme.sim;

import org.jspecify.annotations.NullMarked;

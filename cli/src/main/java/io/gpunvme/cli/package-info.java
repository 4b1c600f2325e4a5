/**
 * The gpunvme command: its subcommands, their options, exit codes and messages.
 *
 * <p>In: one class a subcommand, and what they share. Out: how text and JSON are laid out ({@code
 * output}), and everything that works without a person at a keyboard ({@code io.gpunvme.tools}).
 */
@NullMarked
package io.gpunvme.cli;

import org.jspecify.annotations.NullMarked;

"""The supervisor of one race: starts the racers together, sees who answers first, and leaves nobody behind.

A process of its own, whose start a race waits for. So it imports little of the standard library, since json, re and the
enumerations of signal would cost as much again as the interpreter, and nothing of preselect: it finds this package by
itself, which is why the modules here name each other relatively. They are, from the bottom:

| module      | what it holds                                                                    |
|-------------|----------------------------------------------------------------------------------|
| messages    | what is said between the client and the supervisor                               |
| processes   | processes as /proc shows them, and killing                                       |
| containment | the levels: a pid namespace for the race, or orphans that come to the supervisor |
| launching   | how a new process becomes a racer, and where racers wait for each other          |
| children    | the processes of a race: whose each is, who exits, killing until none is left    |
| racer       | one racer, and which of several answers is the first                             |
| race        | the race itself: starting, waiting, verifying, deciding, ending                  |
| main        | where the process begins                                                         |

The specification comes first on standard input, which stays open as the life line: when it ends or says {"stop": True},
or when the client dies, everything is killed. Events go out on standard output, `done` last.

How a racer can end:

| status               | what happened                                                                                |
|----------------------|----------------------------------------------------------------------------------------------|
| won                  | the first answer that was not found wrong                                                    |
| killed               | running when another won                                                                     |
| finished late        | answered, but another won; its answer was not verified                                       |
| wrong answer         | answered, and the verification said no                                                       |
| crashed              | died of a signal that was not ours, or its output reached the cap and may be cut off         |
| no answer            | exited by itself, with a code that is no answer or an output that the pattern does not match |
| timeout              | running at the time limit                                                                    |
| memory               | killed because its processes together held more memory than the limit                        |
| not started          | its command could not be executed                                                            |
| infrastructure error | our own fault: verifying or matching took too long, a verifier did not start, a call failed   |
"""

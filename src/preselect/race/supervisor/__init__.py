"""The supervisor of one race: starts the racers together, finds the first answer, and leaves no process behind.

It is a process of its own, and every race waits for its start. So it imports little of the standard library (json, re
or enum would cost as much again as starting the interpreter) and nothing else of preselect: its client puts this
package alone on its path, which is why the modules import each other relatively. From the bottom:

| module      | what it holds                                                                        |
|-------------|--------------------------------------------------------------------------------------|
| messages    | how messages between the client and the supervisor are encoded                       |
| system      | system calls that Python does not offer                                              |
| labels      | marks and limits by which the processes of a race are known                           |
| files       | what programs print, in files without a name, and copies of it that have one         |
| processes   | processes as /proc shows them                                                        |
| children    | all processes of a race: how they start, which racer each belongs to, exits, killing |
| racer       | what a race is given, racers and limits, and the statuses of racers                  |
| race        | the race: start, wait, judge exits, verify, decide, end                              |
| main        | where the process begins, and the two levels of containment                          |

The specification of the race arrives on standard input, which then stays open. When it closes or says {"stop": True},
or when the client dies, everything is killed. Events go to standard output; the last one is `done`.

How a racer can end:

| status               | meaning                                                                                    |
|----------------------|--------------------------------------------------------------------------------------------|
| won                  | gave the first answer that did not turn out to be wrong                                    |
| finished             | answered, in a race that all racers run to their end                                       |
| behind               | the same, and its client found another racer's answer better                               |
| killed               | was running when another racer won                                                         |
| finished late        | answered, but another racer won; its answer was not verified                               |
| wrong answer         | answered, and the verification failed                                                      |
| crashed              | died of a signal that the supervisor did not send, or its output reached the limit         |
| no answer            | exited on its own, but its exit code is no answer or the pattern does not match its output |
| timeout              | was running at the time limit                                                              |
| memory               | was killed because its processes together held more memory than the limit                  |
| not started          | its command could not be executed                                                          |
| infrastructure error | not its own fault: verification or matching took too long, or the verifier failed          |
"""

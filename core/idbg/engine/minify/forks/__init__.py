"""How is a script run many times in processes of its own, each begun from one that has torch imported?"""

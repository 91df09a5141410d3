"""An agent that cleans twenty spreadsheets: one scripted model with faults, a chat loop and SPAK around it.

sheets.py makes the files, model.py is the model, chat.py and ours.py are the two arms, figures.py counts.
"""
